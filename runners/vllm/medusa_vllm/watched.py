"""Which of the engine's buffers a piece of work writes.

In: named buffers, and a way to tell that one was written. Out: the names of those that a look has found otherwise than the one before, or than
when they were last held. Fails: as reading does.
"""


class Watched:
    def __init__(self, buffers, read):
        self.buffers, self.read, self.changed = dict(buffers), read, set()
        self.hold()

    def hold(self):
        """What has changed by now does not count."""
        self.held = {name: self.read(b) for name, b in self.buffers.items()}

    def look(self):
        """Between two steps. One look at the end would miss what a later step puts back."""
        for name, b in self.buffers.items():
            now = self.read(b)
            # mutant: buffers that serving changes
            if now != self.held[name]:
                self.changed.add(name)
            # mutant: changes from step to step
            self.held[name] = now

"""Which of the engine's buffers a piece of work writes.

In: named buffers, and a function that reads a value that a write changes. Out: the names of the buffers that have changed between a look and
the look or hold before it. Fails: as reading does.
"""


class Watched:
    def __init__(self, buffers, read):
        self.buffers, self.read, self.changed = dict(buffers), read, set()
        self.hold()

    def hold(self):
        """Changes up to now do not count."""
        self.held = {name: self.read(b) for name, b in self.buffers.items()}

    def look(self):
        """Call it between two steps. One look at the end would miss a change that a later step undoes."""
        for name, b in self.buffers.items():
            now = self.read(b)
            # mutant: buffers that serving changes
            if now != self.held[name]:
                self.changed.add(name)
            # mutant: changes from step to step
            self.held[name] = now

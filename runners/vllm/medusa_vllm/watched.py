"""Which of the engine's buffers serving changes.

In: named buffers, and a way to read one. Out: the names of those whose bytes have differed from one look to the next. Fails: as
reading does.
"""


class Watched:
    def __init__(self, buffers, read):
        self.buffers, self.read, self.changed = dict(buffers), read, set()
        self.held = {name: read(b) for name, b in self.buffers.items()}

    def look(self):
        """Between two steps. One look at the end would miss what a later step puts back."""
        for name, b in self.buffers.items():
            now = self.read(b)
            # mutant: buffers that serving changes
            if now != self.held[name]:
                self.changed.add(name)
            # mutant: changes from step to step
            self.held[name] = now

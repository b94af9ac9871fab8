"""How long restored graphs are used, for both model runners.

In: the session, and a function that gives the labels of the graphs that vLLM would capture. Out: restored graphs by label, until a change makes
them invalid. Fails: never; graphs that do not fit are refused, and vLLM captures.
"""

import sys

from .labels import match


class Use:
    def __init__(self, session):
        self.session = session
        self.graphs = {}
        self.restored = self.capturing = self.asleep = False

    def begin_capture(self):
        """The phase begins once, also if captures follow a restore that cannot be used."""
        # mutant: phase begins once
        if not self.capturing:
            self.session.phase("capture")
            self.capturing = True

    def restore(self, labels, install):
        """Whether restored graphs take the place of captured ones. If so, install has taken them, by label. If not, none of them is
        left. labels() gives the labels of the graphs that vLLM would capture. It is called only if there are restored graphs."""
        # mutant: captures in a start that restores nothing
        if not self.session.restoring:
            return False
        self.begin_capture()
        found = self.session.graphs()
        if found is None:
            return False
        try:
            graphs = match(labels(), found)
            install(graphs)
        except Exception as e:
            # mutant: graphs that cannot be installed
            self.session.refuse(str(e))
            return False
        self.graphs, self.restored = graphs, True
        return True

    def usable(self):
        """Whether captured or restored graphs may be launched. Memory or a module that restored graphs refer to may be gone: vLLM
        then runs the step eagerly."""
        if self.asleep:
            return False
        # mutant: memory of graphs that is gone
        if self.graphs and not next(iter(self.graphs.values())).usable():
            self.drop(self.session.reason())
        return bool(self.graphs) or not self.restored

    def drop(self, reason):
        """From now on steps run eagerly: the memory that the graphs refer to may have moved or changed."""
        if self.graphs:
            print(f"medusa: restored graphs are no longer used: {reason}", file=sys.stderr, flush=True)
            # mutant: graphs that are dropped
            self.session.invalidate(reason)
            self.graphs = {}

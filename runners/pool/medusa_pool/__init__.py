"""Processes of `medusa pool`: Python with an engine's modules imported, which becomes one start of the engine.

In: a socket of the pool. Out: the engine, run as if the caller had started it. waiter.py is the life of such a process, recorded.py notes the facts
that its imports depend on, inherited.py makes it equal to a child of the caller, program.py runs the command, and spawned.py asks the pool for
the processes that the engine spawns. docs/pool.md has the protocol. Only Python's standard library is needed.
"""

importing = False  # a process of the pool imports, for a start that has not come yet

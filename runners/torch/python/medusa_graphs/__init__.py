"""Medusa's plug-in for engines on PyTorch (2.8 or newer): pure Python over two C libraries, no build step.

An engine that uses it starts in this order, and each line is a no-op if Medusa is absent:

    session = medusa.Session()
    session.identify({"engine.name": ..., "model.config": ...})
    session.phase("structure"); allocate the weights; session.tensor(name, t, medusa.WEIGHT) for each
    session.phase("kv_cache");  size = session.kv_bytes() or profile; session.tensor(name, t, medusa.KV)
                                if the size was given: medusa.workspaces(session, other streams) before it
    session.phase("weights");   copy; for b in session.triggers(): session.trigger(lambda: first_layer(b))
    graphs = session.graphs()   and if that is None:
    with medusa.Capture(session) as capture: capture.warm_up(step); capture.graph(label, batch, step)
    and then once more          for b in session.triggers(): session.trigger(lambda: first_layer(b))
    session.ready(self_test)

Several ranks have communicators, in memory of their own, whose calls go through the object that add returns:

    with medusa.communicator(): make it;   library = medusa.Communicators(session).add(library, communicator, ranks)

A restored graph's replay raises GraphInvalid once memory or a module that it refers to is gone, or after
session.invalidate(reason): the engine then runs eagerly.

docs/architecture.md explains the phases.
"""

from .capture import Capture
from .contract import BLOCK, CHECK, DISTINCT, INPUT, KV, NONE, OUTPUT, PROFILE, RECORD, RESTORE, SCRATCH, UNIFORM, WEIGHT, WEIGHTS_ANY, WEIGHTS_COUNT, WEIGHTS_OTHER
from .libraries import workspaces
from .marks import communicator, kv_profile
from .nccl import Communicators
from .session import GraphInvalid, MedusaError, RestoredGraph, Session
from .weights import other as other_weights

__all__ = [
    "BLOCK", "CHECK", "Capture", "Communicators", "DISTINCT", "GraphInvalid", "INPUT", "KV", "MedusaError", "NONE", "OUTPUT", "PROFILE", "RECORD", "RESTORE",
    "RestoredGraph", "SCRATCH", "Session", "UNIFORM", "WEIGHT", "WEIGHTS_ANY", "WEIGHTS_COUNT", "WEIGHTS_OTHER", "communicator",
    "kv_profile", "other_weights", "workspaces",
]

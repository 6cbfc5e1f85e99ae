"""The same program on many ranks: mpirun -n 4 python train.py

Each rank computes on its own share of the data, and they exchange values where the program says so. Started alone, a program is the only rank
and everything works. What is given as a tensor of kassette.keras is recorded, as its functions do, and exchanged when a function is called
or a value is asked for; arrays and numbers are exchanged at once, and give arrays. All ranks make the same calls in the same order.

`how` is one of the names sum, mean, max, min and prod of this module, which are the texts "sum" and so on; `world` is a World, all ranks
if it is left out.
"""
import sys

from ._core import distributed as _ranks
from ._core.distributed import (
    World, all_gather, all_reduce, all_to_all, broadcast, gradients, load, recv, reduce_scatter, save, send, set_timeout, shard,
)

__all__ = ["World", "all_gather", "all_reduce", "all_to_all", "broadcast", "gradients", "init", "load", "max", "mean", "min", "prod",
           "recv", "reduce_scatter", "save", "send", "set_timeout", "shard", "sum"]

sum, mean, max, min, prod = "sum", "mean", "max", "min", "prod"

World.__module__ = __name__


def init():
    """All ranks of the job, a World: those that mpirun started, or this process alone. The first call starts MPI, which ends with the program.

    An exception that nobody catches then says whose it is, and ends all ranks. RuntimeError where several ranks were started and MPI is not
    there.
    """
    world = _ranks.init()
    if world.size > 1 and not isinstance(sys.excepthook, _Uncaught):
        sys.excepthook = _Uncaught(world, sys.excepthook)
    return world


class _Uncaught:
    """The hook for exceptions that nobody catches. Python then ends with a status of 1, and by that the library ends the other ranks."""

    def __init__(self, world, before):
        self.line, self.before = f"kassette: rank {world.rank} of {world.size}:\n", before

    def __call__(self, kind, error, trace):
        sys.stderr.write(self.line)
        self.before(kind, error, trace)
        sys.stderr.flush()

# SPDX-License-Identifier: Apache-2.0
"""KV caches in symmetric memory, and kv_shuffle, which moves their blocks between processes.

A processing element (PE) is a process; ``oshrun -n 4 python3 serve.py`` starts four of them. Every PE allocates its
caches by the same calls, makes the same plan of which blocks go where, and calls :meth:`Operator.shuffle`::

    import numpy as np
    import shmem_kv

    with shmem_kv.init():
        k = shmem_kv.zeros((80, 8, 128, 128), np.float16)     # [blocks][kv_heads][page_size][head_dim]
        v = shmem_kv.zeros((80, 8, 128, 128), np.float16)
        plan = shmem_kv.Plan([(0, 3, 1, 7)])                  # block 3 of PE 0 to block 7 of PE 1
        with shmem_kv.Operator() as operator:
            operator.shuffle(plan, shmem_kv.Cache(k, v))

"Collective" calls are made by all PEs (of a team), in the same order. They let other threads run while they wait.

Exceptions: ``ValueError`` for arguments that are wrong, here or on another PE; ``TimeoutError`` after
``SHMEM_BARRIER_TIMEOUT``; ``ConnectionAbortedError`` where another PE gave up, ``ConnectionError`` where it died or the
job was ended; ``MemoryError``; ``RuntimeError`` for calls before :func:`init` or after :func:`finalize`. What an
exception says is not printed; warnings, such as whom a barrier waits for, go to standard error. Calls that have no way
to report (:func:`barrier_all`, :func:`free`) end the job with a message, as they do in C.
"""

from __future__ import annotations

import os as _os
from types import TracebackType as _TracebackType

from . import _core
from ._arrays import Arena, empty, free, is_symmetric, zeros
from ._cache import Cache
from ._kv_shuffle import KVShuffle
from ._operator import Operator
from ._plan import Placement, Plan, Sequence

__all__ = [
    "Arena",
    "Cache",
    "KVShuffle",
    "Operator",
    "Placement",
    "Plan",
    "Sequence",
    "TEAM_SHARED",
    "TEAM_WORLD",
    "barrier",
    "barrier_all",
    "empty",
    "finalize",
    "free",
    "init",
    "initialized",
    "is_symmetric",
    "my_pe",
    "n_pes",
    "team_destroy",
    "team_split_strided",
    "unique_id",
    "zeros",
]

TEAM_WORLD = 0
"""All PEs."""
TEAM_SHARED = 1
"""The PEs that share memory with this one: all of them."""


class _Job:
    """What :func:`init` gives; as a context manager, it ends with :func:`finalize`."""

    def __enter__(self) -> _Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: _TracebackType | None
    ) -> None:
        # After an exception the others may be anywhere: nothing collective can be done. If it ends this process, the
        # launcher ends the others.
        if error is None and initialized():
            finalize()


def init(
    heap_size: int = 0, *, unique_id: bytes | None = None, my_pe: int | None = None, n_pes: int | None = None
) -> _Job:
    """Makes a PE of this process. Collective.

    PEs are started by a launcher (oshrun, mpirun, srun), or by whatever starts the processes of the application, which
    then passes a :func:`unique_id` to all of them, with the number of each and how many they are.

    ``heap_size``: bytes of symmetric memory of each PE, the same on all; 0: as ``SHMEM_SYMMETRIC_SIZE`` says. It is
    taken when it is touched. Use it as ``with init():``, or call :func:`finalize`; a process that ends without either
    just ends. After :func:`finalize` it may be called again.

    Global variables of the interpreter do not become symmetric, unless the environment says so
    (``SHMEM_SYMMETRIC_GLOBALS``).
    """
    _os.environ.setdefault("SHMEM_SYMMETRIC_GLOBALS", "off")
    if (unique_id is None) != (my_pe is None) or (unique_id is None) != (n_pes is None):
        raise ValueError("init: unique_id, my_pe and n_pes go together")
    _core.init(heap_size, unique_id or b"", my_pe or 0, n_pes or 0)
    return _Job()


def unique_id() -> bytes:
    """For a job that is started without a launcher: called by one process, which will be PE 0, before :func:`init`.

    Its bytes go to the other PEs by what the application has (a queue, a file, ``torch.distributed``), and to nobody
    else: who has them can join. This process listens for the others, where ``SHMEM_UID_SESSION_ID`` or
    ``SHMEM_UID_SOCK_IFNAME`` say.
    """
    return _core.unique_id()


def finalize() -> None:
    """Ends what :func:`init` began. Collective.

    Operators that are open are closed. Arrays that are still referred to keep their contents, in memory that is no
    longer symmetric.
    """
    _core.finalize()


def initialized() -> bool:
    """Whether the library runs in this process."""
    return _core.initialized()


def my_pe(team: int = TEAM_WORLD) -> int:
    """The number of this PE, 0 to ``n_pes() - 1``, in a team."""
    return _core.my_pe(team)


def n_pes(team: int = TEAM_WORLD) -> int:
    """How many PEs a team has."""
    return _core.n_pes(team)


def barrier(team: int) -> None:
    """Waits until all PEs of the team are here, and what they stored is visible. Collective over the team."""
    _core.barrier(team)


def barrier_all() -> None:
    """:func:`barrier` of all PEs."""
    _core.barrier(TEAM_WORLD)


def team_split_strided(parent: int, start: int, stride: int, size: int) -> int:
    """A team of the PEs start, start + stride, ... of another. Collective over ``parent``.

    Gives -1 on PEs that are not in it.
    """
    return _core.team_split_strided(parent, start, stride, size)


def team_destroy(team: int) -> None:
    """Ends a team made by :func:`team_split_strided`. Collective over the team."""
    _core.team_destroy(team)

# SPDX-License-Identifier: Apache-2.0
"""Start and end of a job, its teams and barriers."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from types import TracebackType

from . import _core
from ._arrays import forget_registered

TEAM_WORLD = 0
"""All PEs."""
TEAM_SHARED = 1
"""The PEs that share memory with this one."""


class _Job:
    """The result of :func:`init`. As a context manager, it ends with :func:`finalize`."""

    def __enter__(self) -> _Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # After an exception the other PEs may not reach this point, so no collective call is possible. If the
        # exception ends this process, the launcher ends the others.
        if error is None and initialized():
            finalize()


class _OneTraceback:
    """The ``sys.excepthook`` of a PE that oshrun has started: it leaves out the traceback of a call that has failed because
    another PE ended the job, or itself. oshrun tells the cause, once. A PE that may go on without the others has a reason
    of its own to end."""

    def __init__(
        self, others: Callable[[type[BaseException], BaseException, TracebackType | None], object], survive: bool
    ) -> None:
        self._others = others
        self._told = (errno.ECANCELED,) if survive else (errno.ECANCELED, errno.EOWNERDEAD)

    def __call__(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if not (isinstance(error, ConnectionError) and error.errno in self._told):
            self._others(kind, error, traceback)


def init(
    heap_size: int = 0,
    *,
    unique_id: bytes | None = None,
    my_pe: int | None = None,
    n_pes: int | None = None,
    survive: bool = False,
) -> _Job:
    """Makes this process a PE. Collective.

    A launcher (oshrun, mpirun, srun) starts the PEs, or the application itself, which then passes a :func:`unique_id`,
    the number of each PE and the number of PEs to all of them.

    ``heap_size``: bytes of symmetric memory of each PE, the same on all; 0: the value of ``SHMEM_SYMMETRIC_SIZE``.
    Memory is allocated at its first use. Use it as ``with init():``, or call :func:`finalize`; neither is required at
    the end of a process. After :func:`finalize` it may be called again.

    ``survive``, the same on all PEs: the job goes on when a PE dies, and :func:`team_shrink` makes a team of the others
    (on one node, started by oshrun or with a :func:`unique_id`).

    Global variables of the interpreter become symmetric only if the environment requests it
    (``SHMEM_SYMMETRIC_GLOBALS``).
    """
    os.environ.setdefault("SHMEM_SYMMETRIC_GLOBALS", "off")
    if (unique_id is None) != (my_pe is None) or (unique_id is None) != (n_pes is None):
        raise ValueError("init: unique_id, my_pe and n_pes go together")
    _core.init(heap_size, unique_id or b"", my_pe or 0, n_pes or 0, survive)
    if "OSHRUN_RANK" in os.environ and not isinstance(sys.excepthook, _OneTraceback):
        sys.excepthook = _OneTraceback(sys.excepthook, survive)
    return _Job()


def unique_id() -> bytes:
    """For a job without a launcher: called by one process, which will be PE 0, before :func:`init`.

    The application sends the bytes to the other PEs (by a queue, a file, ``torch.distributed``), and keeps them secret:
    a process that has them can join. This process listens for the others at the address in ``SHMEM_UID_SESSION_ID``
    or ``SHMEM_UID_SOCK_IFNAME``.
    """
    return _core.unique_id()


def finalize() -> None:
    """Ends the library in this process. Collective.

    Closes open operators. Arrays that are still referenced keep their contents, in memory that is no longer symmetric.
    """
    try:
        _core.finalize()
    finally:
        forget_registered()


def initialized() -> bool:
    """Whether the library is running in this process."""
    return _core.initialized()


def my_pe(team: int = TEAM_WORLD) -> int:
    """The number of this PE, 0 to ``n_pes() - 1``, in a team."""
    return _core.my_pe(team)


def n_pes(team: int = TEAM_WORLD) -> int:
    """The number of PEs in a team."""
    return _core.n_pes(team)


def barrier(team: int) -> None:
    """Waits until all PEs of the team have called it, and their stores are visible. Collective over the team."""
    _core.barrier(team)


def barrier_all() -> None:
    """:func:`barrier` of all PEs."""
    _core.barrier(TEAM_WORLD)


def team_split_strided(parent: int, start: int, stride: int, size: int) -> int:
    """A team of the PEs start, start + stride, ... of another team. Collective over ``parent``.

    Returns -1 on PEs that are not in it.
    """
    return _core.team_split_strided(parent, start, stride, size)


def team_shrink(team: int) -> int:
    """A new team of the members of ``team`` that are left, the same on all of them, after ``init(survive=True)``.

    Collective over the members that live: each calls it when a call on the team has raised ``ConnectionError``, or
    ``TimeoutError`` because of a PE that hangs. A PE that does not call it within ``SHMEM_BARRIER_TIMEOUT`` (if that is
    not set, ``SHMEM_BOOTSTRAP_TIMEOUT``) is left out, and gets an ``OSError`` with ``errno.ENOTRECOVERABLE``. The new
    team of ``TEAM_WORLD`` stands for it in :func:`empty`, :func:`free`, ``Operator`` and :func:`finalize`. Operators of
    the old team cannot be used: closing one frees its memory and raises ``ConnectionError``.
    """
    return _core.team_shrink(team)


def team_grow(team: int, processes: int = 1) -> int:
    """A new team of the members of ``team`` that are left, and of processes in the places of dead PEs, on one node.

    ``oshrun --restart N`` starts such processes, also in the place of a PE that hangs, once :func:`team_shrink` has left
    it out. ``team`` is what is left of ``TEAM_WORLD``. Collective over the members that live, and over the new
    processes: these pass ``TEAM_WORLD``. The members wait until ``processes`` new ones have come, up to
    ``SHMEM_BOOTSTRAP_TIMEOUT``; the new team has all that have come, and is what is left of ``TEAM_WORLD`` from then on.
    In a new process :func:`is_replacement` is true, and its symmetric memory is zero.
    """
    return _core.team_grow(team, processes)


def is_replacement() -> bool:
    """Whether this process has taken the place of a PE that has died: :func:`team_grow` gives it a team."""
    return _core.is_replacement()


def team_failed(team: int) -> list[int]:
    """The PEs that were left out when the team was shrunk; before that, those whose processes have ended.

    They are numbers of ``TEAM_WORLD``. Not collective.
    """
    return _core.team_failed(team)


def team_destroy(team: int) -> None:
    """Ends a team made by :func:`team_split_strided` or :func:`team_shrink`. Collective over the team."""
    _core.team_destroy(team)

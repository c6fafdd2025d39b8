# SPDX-License-Identifier: Apache-2.0
"""KV caches in symmetric memory; kv_shuffle, which moves their blocks between the processes of a job; and exchanges, in
which independent processes pull blocks from each other by key.

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

All PEs (of a team) make "collective" calls, in the same order. Other threads run while these calls wait.

Exchanges need no :func:`init`, no launcher and no collective call (:class:`Exchange`, :class:`Store`)::

    with shmem_kv.Exchange("demo") as exchange:
        region = exchange.allocate(1 << 20)
        exchange.publish("key", region.array((128, 128), np.float16))   # what others find
        exchange.pull(exchange.find("other key"), destination)          # what others have published

Their exceptions are subclasses of :class:`ExchangeError`. Those of the other calls: ``ValueError`` for invalid arguments, here or on another PE; ``TimeoutError`` after
``SHMEM_BARRIER_TIMEOUT``; ``ConnectionAbortedError`` if another PE gave up, ``ConnectionError`` if it died or the job
was ended; ``MemoryError``; ``RuntimeError`` for calls before :func:`init` or after :func:`finalize`. The text of an
exception is not printed. Warnings, such as the PEs that a barrier waits for, go to standard error. The library never
ends the process: after a failure :func:`finalize` (which then raises, too) ends the library, and :func:`init` with a new
:func:`unique_id` starts a new job, for example of the PEs that are left.
"""

from __future__ import annotations

import sys as _sys
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _find_spec(__name__ + "._exchange_core") is None:
    raise ImportError(
        f"shmem_kv: {__path__[0]} has no part that is compiled for Python {_sys.version_info[0]}.{_sys.version_info[1]}: "
        "build it and set PYTHONPATH=build/lib/python, or install the wheel of scripts/wheel.sh (docs/python.md)"
    )

from ._dlpack import Array, from_dlpack, to_torch
from ._exchange import Block, Exchange, ExchangeStats, Found, Member, Region, RegionPart, Transfer
from ._exchange_errors import (
    BlockLeased,
    BlockNotFound,
    Canceled,
    CorruptDirectory,
    ExchangeError,
    ExchangeFull,
    KeyInUse,
    LayoutMismatch,
    NoRoom,
    OverQuota,
    OwnerDied,
    OwnerSilent,
    StaleBlock,
    TooManyTransfers,
    UnreadableMemory,
    UnsupportedMemory,
    WrongSize,
)
from ._load_plan import Load, LoadMove, LoadPlan, Share, plan_loads
from ._store import Store, StoreStats, layout_of
from ._version import __version__

if _TYPE_CHECKING:
    from ._arrays import Arena, empty, free, is_symmetric, register, unregister, zeros
    from ._cache import Cache
    from ._job import (
        TEAM_SHARED,
        TEAM_WORLD,
        barrier,
        barrier_all,
        finalize,
        init,
        initialized,
        is_replacement,
        my_pe,
        n_pes,
        team_destroy,
        team_failed,
        team_grow,
        team_shrink,
        team_split_strided,
        unique_id,
    )
    from ._kv_shuffle import KVShuffle
    from ._operator import Operator, OperatorStats
    from ._plan import Placement, Plan, Sequence

__all__ = [
    "Arena",
    "Array",
    "Block",
    "BlockLeased",
    "BlockNotFound",
    "Cache",
    "Canceled",
    "CorruptDirectory",
    "Exchange",
    "ExchangeError",
    "ExchangeFull",
    "ExchangeStats",
    "Found",
    "KVShuffle",
    "KeyInUse",
    "LayoutMismatch",
    "Load",
    "LoadMove",
    "LoadPlan",
    "Member",
    "NoRoom",
    "Operator",
    "OperatorStats",
    "OverQuota",
    "OwnerDied",
    "OwnerSilent",
    "Placement",
    "Plan",
    "Region",
    "RegionPart",
    "Sequence",
    "Share",
    "StaleBlock",
    "Store",
    "StoreStats",
    "TEAM_SHARED",
    "TEAM_WORLD",
    "TooManyTransfers",
    "Transfer",
    "UnreadableMemory",
    "UnsupportedMemory",
    "WrongSize",
    "__version__",
    "barrier",
    "barrier_all",
    "empty",
    "finalize",
    "free",
    "from_dlpack",
    "init",
    "initialized",
    "is_replacement",
    "is_symmetric",
    "layout_of",
    "my_pe",
    "n_pes",
    "plan_loads",
    "register",
    "team_destroy",
    "team_failed",
    "team_grow",
    "team_shrink",
    "team_split_strided",
    "to_torch",
    "unique_id",
    "unregister",
    "zeros",
]

# What loads libshmem, at its first use: a process that only shares blocks needs libkvexchange alone.
_OF_JOBS = {
    "_arrays": ("Arena", "empty", "free", "is_symmetric", "register", "unregister", "zeros"),
    "_cache": ("Cache",),
    "_kv_shuffle": ("KVShuffle",),
    "_operator": ("Operator", "OperatorStats"),
    "_plan": ("Placement", "Plan", "Sequence"),
    "_job": (
        *("TEAM_SHARED", "TEAM_WORLD", "barrier", "barrier_all", "finalize", "init", "initialized", "is_replacement"),
        *("my_pe", "n_pes", "team_destroy", "team_failed", "team_grow", "team_shrink", "team_split_strided", "unique_id"),
    ),
}


def __getattr__(name: str) -> object:
    for module, names in _OF_JOBS.items():
        if name in names:
            globals()[name] = value = getattr(_import_module("." + module, __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

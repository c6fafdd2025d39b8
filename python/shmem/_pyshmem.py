# SPDX-License-Identifier: Apache-2.0
"""The C interface of Ascend SHMEM: addresses, streams and teams are numbers."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable

from shmem_kv import _core
from shmem_kv._core import ascend
from shmem_kv._core.ascend import *  # noqa: F403  the calls for single values have a name for each type
from shmem_kv._job import finalize as _finalize

_OWN = ("UniqueId", "aclshmem_finalize", "aclshmem_get_unique_id", "aclshmem_init_using_unique_id", "aclshmemx_finalize")
_INTERNAL = ("forget_memory", "rt", "set_logger", "start", "synchronize_stream")
__all__ = [*_OWN, "set_extern_logger", *(name for name in dir(ascend) if name[0] != "_" and name not in _INTERNAL)]


class UniqueId(bytes):
    """What starts a job: bytes, which one process makes and sends to the others."""

    def __new__(cls, value: bytes = b"") -> UniqueId:
        return super().__new__(cls, value)


def _code_of(name: str, error: Exception) -> int:
    """The code of a call that does not raise; says why."""
    print(f"shmem: {name}: {error}", file=sys.stderr)
    return -1 if isinstance(error, ValueError) else -4  # ACLSHMEM_INVALID_PARAM, ACLSHMEM_INNER_ERROR


def aclshmem_init_using_unique_id(mype: int, npes: int, mem_size: int, uid: bytes) -> int:
    """Makes this process PE ``mype`` of ``npes``, with ``mem_size`` bytes of symmetric memory. Collective. 0, or a code."""
    try:
        ascend.start(mype, npes, mem_size, bytes(uid))
    except (ValueError, OSError, RuntimeError, MemoryError) as error:
        return _code_of("aclshmem_init_using_unique_id", error)
    return 0


def stop() -> None:
    """As :func:`shmem_kv.finalize`."""
    ascend.forget_memory()
    _finalize()


def aclshmem_finalize() -> int:
    """Ends the library. Collective. Tensors keep their contents. 0, or a code."""
    if not _core.initialized():
        return -5  # ACLSHMEM_NOT_INITED
    try:
        stop()
    except (OSError, RuntimeError, MemoryError) as error:
        return _code_of("aclshmem_finalize", error)
    return 0


def aclshmemx_finalize(instance_id: int) -> int:
    """The same; there is one instance, 0."""
    return aclshmem_finalize() if instance_id == 0 else -100  # ACLSHMEM_NOT_SUPPORTED


def aclshmem_get_unique_id() -> UniqueId:
    """What starts a job, made by the process that will be PE 0, and kept secret (:func:`shmem_kv.unique_id`)."""
    return UniqueId(_core.unique_id())


def set_extern_logger(func: Callable[[int, str], object] | None) -> int:
    """Gives each message of the library to ``func(level, text)``; None: to standard error."""
    ascend.set_logger(func)
    return 0


# A thread of the library may have a message when the interpreter has ended.
atexit.register(set_extern_logger, None)

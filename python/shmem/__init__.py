# SPDX-License-Identifier: Apache-2.0
"""The Python package of Ascend SHMEM, for programs that are written for it: :mod:`shmem.core`, and the C interface with
addresses that are numbers. The job and its symmetric memory are those of :mod:`shmem_kv`; tensors are CPU tensors.
docs/from-ascend.md says what is different.

The calls return what those of that package return. Where that is nothing, an error raises as in :mod:`shmem_kv`:
``ValueError`` for invalid arguments, ``ConnectionError`` for a PE that died, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

import shmem_kv as _shmem_kv

from . import _pyshmem, acl, core
from ._pyshmem import *  # noqa: F403

if _TYPE_CHECKING:
    import torch

aclshmem_finialize = _pyshmem.aclshmem_finalize  # an older spelling, which programs use


def aclshmem_create_tensor(shape: int | tuple[int, ...], dtype: torch.dtype | None = None, device_id: int = 0) -> torch.Tensor:
    """A CPU tensor in symmetric memory, not initialized; float32 unless ``dtype`` says. ``device_id`` is ignored. Collective."""
    del device_id
    return _shmem_kv.to_torch(_shmem_kv.empty(shape, "float32" if dtype is None else dtype))


def aclshmem_free_tensor(tensor: torch.Tensor) -> None:
    """Frees the memory of such a tensor, which must not be used any more. Collective."""
    _shmem_kv.free(tensor)

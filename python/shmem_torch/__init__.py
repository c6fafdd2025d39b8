# SPDX-License-Identifier: Apache-2.0
"""The backend "shmem" of torch.distributed: process groups of tensors of the CPU, and of CUDA devices, which go through
memory of the host.

Importing this module registers it::

    import torch.distributed as dist
    import shmem_torch

    dist.init_process_group("shmem")        # as with "gloo"

Ranks of a node share memory; nodes send messages to each other. A rank that dies, or does not come within the timeout
of the group, is an exception on the others that names it, and never the end of their processes; the group cannot be used
any more, and a new one can be made of the ranks that are left. Ranks whose calls differ (in size, dtype, operation, root or
kind) all get an exception, and the group goes on.

Calls on tensors of :func:`empty` copy nothing: each rank reads those of the others.

If SHMEM_TORCH_GLOO is 1, shmem also makes the groups of CPU tensors that the program asks gloo for.

With PyTorch 2.6 and 2.14 importing it also gives ``torch.distributed._symmetric_memory`` memory for CPU tensors, for process
groups of any backend whose ranks are on one node; ``HAS_SYMMETRIC_MEMORY`` says so.
"""

from __future__ import annotations

import sys as _sys
from collections.abc import Sequence as _Sequence
from datetime import timedelta as _timedelta
from importlib.util import find_spec as _find_spec
from typing import NamedTuple as _NamedTuple

if _find_spec(__name__ + "._C") is None:
    raise ImportError(
        f"shmem_torch: {__path__[0]} has no part that is compiled for Python {_sys.version_info[0]}.{_sys.version_info[1]}: "
        "build it and set PYTHONPATH=build/lib/python, or install the wheel of scripts/wheel.sh (docs/python.md)"
    )

from ._version import TORCH as _TORCH
from ._version import __version__

try:
    import torch as _torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        f"shmem_torch: {_sys.executable} has no PyTorch: install PyTorch {_TORCH}, for which this module was built (Debian: "
        "python3-torch, which a virtual environment sees with --system-site-packages)"
    ) from None
if _torch.__version__.split(".")[:2] != _TORCH.split("."):
    raise ImportError(
        f"shmem_torch was built for PyTorch {_TORCH}, but this is PyTorch {_torch.__version__}: use {_TORCH}, or build the module, "
        "or the wheel, where this one is installed (docs/python.md)"
    )

import torch.distributed as _dist

from . import _C, _gloo

__all__ = ["HAS_SYMMETRIC_MEMORY", "Statistics", "__version__", "abort", "empty", "monitored_barrier", "register", "statistics"]


class Statistics(_NamedTuple):
    """What this rank has done in a group."""

    calls: int
    """Collective calls without an exception. A batch that torch makes of several calls counts as these."""
    direct_calls: int
    """Of these, the calls that used tensors in symmetric memory where they are."""
    staged_bytes: int
    """Bytes that were copied to the memory of the library because a call was not direct."""
    direct_messages: int
    """Messages received that were copied once: straight from the sender's tensor."""
    device_barriers: int
    """Barriers that went through the Global Barrier Accelerator."""
    sent_bytes: int
    """Bytes sent to ranks on other nodes. Everything else goes through shared memory."""


def empty(
    shape: int | _Sequence[int], dtype: _torch.dtype | None = None, group: _dist.ProcessGroup | None = None
) -> _torch.Tensor:
    """A tensor in symmetric memory of a group, by default of all ranks. Collective: all ask for as many bytes.

    It contains zeros. Collective calls on the group whose tensors are all in its symmetric memory copy nothing to the
    library; parts of such tensors, and tensors of several calls of this function, will do. Of all_gather and all_to_all
    the input counts, of reduce_scatter the input, of all_reduce the tensor. Small calls (up to 64 KiB; all_reduce and
    reduce: about a KiB), for which a copy is faster, and calls whose tensors overlap or are not contiguous are made as
    with other tensors.

    The memory goes when the last reference to the tensor goes, on each rank by itself.
    """
    sizes = [shape] if isinstance(shape, int) else [int(one) for one in shape]
    return _C.empty(_backend_of(group), sizes, dtype if dtype is not None else _torch.get_default_dtype())


def statistics(group: _dist.ProcessGroup | None = None) -> Statistics:
    """What this rank has done in a group since it was made, such as whether its calls were direct."""
    return Statistics(*_C.statistics(_backend_of(group)))


def monitored_barrier(group: _dist.ProcessGroup | None = None, timeout: _timedelta | None = None) -> None:
    """A barrier with a timeout of its own. The exception names all ranks that did not come.

    ``torch.distributed.monitored_barrier`` refuses all backends but gloo.
    """
    _C.monitored_barrier(_backend_of(group), timeout if timeout is not None else _timedelta(milliseconds=-1))


def abort(group: _dist.ProcessGroup | None = None) -> None:
    """Ends the calls of all ranks of a group, those that wait at once: they raise, and so do later ones.

    Not collective: any thread of one rank may call it. What ``group.abort()`` is in newer versions of PyTorch.
    """
    _C.abort(_backend_of(group))


def _backend_of(group: _dist.ProcessGroup | None) -> _dist.ProcessGroup:
    group = group if group is not None else _dist.distributed_c10d._get_default_group()
    if hasattr(group, "_get_backend"):  # PyTorch 2
        group = group._get_backend(_torch.device("cpu"))
    return group


def _create(options: object, *rest: object) -> _dist.ProcessGroup:
    """What torch calls for each group: PyTorch 2 with its options and the program's, PyTorch 1 with a store and so on."""
    if not hasattr(options, "group_rank"):
        return _C.create(options, *rest)
    return _C.create(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        options.group_id,
        list(options.global_ranks_in_group),
        getattr(options, "enable_reconfigure", False),
    )


def register() -> None:
    """Called by PyTorch 2.14 when a program asks for the backend "shmem": importing this module has registered it."""


if not hasattr(_dist.Backend, "SHMEM"):
    try:
        _dist.Backend.register_backend("shmem", _create, extended_api=True, devices=["cpu", "cuda"])
    except TypeError:  # PyTorch 1
        _dist.Backend.register_backend("shmem", _create)

if _gloo.is_wanted():
    _gloo.take_over()

HAS_SYMMETRIC_MEMORY: bool = _C.register_symmetric_memory()
"""``torch.distributed._symmetric_memory.empty(..., device="cpu")`` and ``rendezvous`` work."""

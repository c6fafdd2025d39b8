# SPDX-License-Identifier: Apache-2.0
"""The backend "shmem" of torch.distributed: process groups of CPU tensors in shared memory.

Importing this module registers it::

    import torch.distributed as dist
    import shmem_torch

    dist.init_process_group("shmem")        # as with "gloo"

All ranks are on one node. A rank that dies, or does not come within the timeout of the group, is an exception on the
others that names it, and never the end of their processes; the group cannot be used any more, and a new one can be made
of the ranks that are left. Ranks whose calls differ (in size, dtype, operation, root or kind) all get an exception, and
the group goes on.
"""

from __future__ import annotations

from datetime import timedelta as _timedelta

import torch.distributed as _dist

from . import _C

__all__ = ["monitored_barrier"]


def _create(store: _dist.Store, rank: int, size: int, timeout: _timedelta) -> _dist.ProcessGroup:
    return _C.create(store, rank, size, timeout)


def monitored_barrier(group: _dist.ProcessGroup | None = None, timeout: _timedelta | None = None) -> None:
    """A barrier with a timeout of its own. The exception names all ranks that did not come.

    ``torch.distributed.monitored_barrier`` refuses all backends but gloo.
    """
    group = group if group is not None else _dist.distributed_c10d._get_default_group()
    if hasattr(group, "_get_backend"):  # PyTorch 2
        import torch

        group = group._get_backend(torch.device("cpu"))
    _C.monitored_barrier(group, timeout if timeout is not None else _timedelta(milliseconds=-1))


if not hasattr(_dist.Backend, "SHMEM"):
    try:
        _dist.Backend.register_backend("shmem", _create, devices=["cpu"])
    except TypeError:  # PyTorch 1
        _dist.Backend.register_backend("shmem", _create)

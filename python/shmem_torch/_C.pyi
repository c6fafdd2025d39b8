# SPDX-License-Identifier: Apache-2.0
from datetime import timedelta

import torch
from torch.distributed import ProcessGroup, Store

def create(
    store: Store,
    rank: int,
    size: int,
    timeout: timedelta,
    name: str = "",
    ranks: list[int] = ...,
    reconfigure: bool = False,
) -> ProcessGroup: ...
def abort(group: ProcessGroup) -> None: ...
def monitored_barrier(group: ProcessGroup, timeout: timedelta) -> None: ...
def empty(group: ProcessGroup, shape: list[int], dtype: torch.dtype) -> torch.Tensor: ...
def statistics(group: ProcessGroup) -> tuple[int, int, int, int]: ...
def register_symmetric_memory() -> bool: ...

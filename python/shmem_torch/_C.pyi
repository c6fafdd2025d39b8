# SPDX-License-Identifier: Apache-2.0
from datetime import timedelta

from torch.distributed import ProcessGroup, Store

def create(store: Store, rank: int, size: int, timeout: timedelta) -> ProcessGroup: ...
def monitored_barrier(group: ProcessGroup, timeout: timedelta) -> None: ...

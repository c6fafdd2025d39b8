# SPDX-License-Identifier: Apache-2.0
"""Replica: what LMCache expects of a second level, and how it counts the bytes there."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class AdapterUsage:
    total_bytes_used: int
    total_capacity_bytes: int  # 0: unknown
    bytes_by_cache_salt: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def usage_fraction(self) -> float:
        return self.total_bytes_used / self.total_capacity_bytes if self.total_capacity_bytes > 0 else -1.0


class L2AdapterInterface(ABC):
    def __init__(self, max_capacity_bytes=0):
        self._max_capacity_bytes = max_capacity_bytes
        self._total_bytes_used = 0
        self._usage_lock = threading.Lock()

    @property
    def supports_global_eviction(self) -> bool:
        return self._max_capacity_bytes > 0

    @abstractmethod
    def submit_store_task(self, keys, objects) -> int: ...

    @abstractmethod
    def pop_completed_store_tasks(self) -> dict: ...

    @abstractmethod
    def submit_lookup_and_lock_task(self, keys, group_layout_descs) -> int: ...

    @abstractmethod
    def query_lookup_and_lock_result(self, task_id) -> list[bool] | None: ...

    @abstractmethod
    def submit_unlock(self, keys) -> None: ...

    @abstractmethod
    def submit_load_task(self, keys, objects) -> int: ...

    @abstractmethod
    def query_load_result(self, task_id) -> list[bool] | None: ...

    @abstractmethod
    def close(self) -> None: ...

    def delete(self, keys) -> None:
        return

    def get_usage(self) -> AdapterUsage:
        with self._usage_lock:
            return AdapterUsage(self._total_bytes_used, self._max_capacity_bytes)

    def report_status(self) -> dict:
        return {"is_healthy": True}

    def _notify_keys_stored(self, keys, sizes):
        with self._usage_lock:
            self._total_bytes_used += sum(sizes)

    def _notify_keys_deleted(self, keys, sizes):
        with self._usage_lock:
            self._total_bytes_used -= sum(sizes)

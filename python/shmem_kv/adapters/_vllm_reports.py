# SPDX-License-Identifier: Apache-2.0
"""What the tier for vLLM reports: events of its blocks, for routers, and metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .._store import Store, StoreStats
from ._copies import CopyQueue
from ._holder import HolderWatch
from ._inventory import Inventory

_PREFIX = "vllm:kv_offload_shmem_"
_COUNTERS = {
    "stored_chunks": "Chunks that were stored.",
    "evicted_chunks": "Chunks that were evicted, by a holder also those of other engines.",
    "own_hit_chunks": "Chunks that were loaded from the store of this engine.",
    "shared_hit_chunks": "Chunks that were loaded from the holder or other members of the exchange.",
    "missed_chunks": "Chunks that could not be loaded.",
    "dropped_stores": "Store jobs that were dropped because storing was slow.",
}
_GAUGES = {
    "chunks": "Chunks in the store or holder.",
    "bytes": "Bytes of the chunks in the store or holder.",
    "capacity_bytes": "Bytes that the store or holder has room for.",
    "oldest_store_seconds": "Age of the oldest store job that has not ended.",
    "members": "Other members of the exchange.",
}


def metric_definitions() -> dict[str, Any]:
    """The metrics, as vLLM declares them to Prometheus."""
    from vllm.v1.kv_offload.base import OffloadingCounterMetadata, OffloadingGaugeMetadata

    counters = {_PREFIX + name: OffloadingCounterMetadata(documentation=text) for name, text in _COUNTERS.items()}
    return counters | {_PREFIX + name: OffloadingGaugeMetadata(documentation=text) for name, text in _GAUGES.items()}


def publishes_events(spec: Any) -> bool:
    """Whether vLLM takes events and publishes them."""
    config = getattr(spec, "kv_events_config", None) or getattr(spec, "config", None)
    return bool(getattr(config, "enable_kv_cache_events", False))


class Reports:
    """Of one tier. Called by vLLM, never two calls at a time."""

    def __init__(
        self,
        tier_type: str,
        store: Store,
        read_stats: Callable[[], StoreStats],
        copies: CopyQueue,
        inventory: Inventory | HolderWatch | None,
    ) -> None:
        self._tier_type = tier_type
        self._store = store
        self._read_stats = read_stats
        self._copies = copies
        self._inventory = inventory
        self._reported = self._values()[0]
        self._gauges: dict[str, float] = {}

    def events(self) -> list[Any]:
        """Events since the last call, of chunks that were stored and removed."""
        if self._inventory is None:
            return []
        return [self._event(keys, removed) for removed, keys in self._inventory.take()]

    def stats(self) -> Any:
        """What has changed since the last call; None: nothing."""
        from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import OffloadingConnectorStats

        stats = OffloadingConnectorStats()
        totals, gauges = self._values()
        for name, total in totals.items():
            # Less: of a holder that was started again.
            more = total - self._reported[name] if total >= self._reported[name] else total
            if more > 0:
                stats.increase_counter(_PREFIX + name, more)
        for name, value in gauges.items():
            if value != self._gauges.get(name):
                stats.set_gauge(_PREFIX + name, value)
        self._reported, self._gauges = totals, gauges
        return None if stats.is_empty() else stats

    def _values(self) -> tuple[dict[str, float], dict[str, float]]:
        store = self._read_stats()
        totals: dict[str, float] = {
            "stored_chunks": store.stored,
            "evicted_chunks": store.evicted,
            "own_hit_chunks": store.local_hits,
            "shared_hit_chunks": store.remote_hits,
            "missed_chunks": store.misses,
            "dropped_stores": self._copies.dropped,
        }
        gauges = {
            "chunks": store.blocks,
            "bytes": store.bytes,
            "capacity_bytes": store.capacity,
            "oldest_store_seconds": round(self._copies.oldest(), 1),
            "members": self._store.exchange.stats().members,
        }
        return totals, gauges

    def _event(self, keys: list[bytes], removed: bool) -> Any:
        from vllm.v1.kv_offload.base import Locality, Medium, OffloadingEvent

        known = {field.name for field in dataclasses.fields(OffloadingEvent)}
        # Without an owner, an event of the medium CPU would be taken for one of vLLM's own pool.
        fields = {
            "keys": keys,
            "medium": Medium.CPU if "ownership" in known else Medium.STORAGE,
            "removed": removed,
            "locality": Locality.LOCAL,
            "ownership": self._tier_type,
            "removal_expected": True,
        }
        return OffloadingEvent(**{name: value for name, value in fields.items() if name in known})

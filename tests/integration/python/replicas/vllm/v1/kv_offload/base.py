# SPDX-License-Identifier: Apache-2.0
"""Replica: what a secondary tier of vLLM imports from vllm.v1.kv_offload.base."""

import enum
from dataclasses import dataclass

OffloadKey = bytes


class LookupResult(enum.Enum):
    MISS = enum.auto()
    HIT = enum.auto()
    HIT_PENDING = enum.auto()
    RETRY = enum.auto()


class Medium(enum.Enum):
    CPU = "CPU"
    STORAGE = "STORAGE"


class Locality(enum.Enum):
    LOCAL = "LOCAL"
    REMOTE = "REMOTE"


class OffloadPolicy(enum.Enum):
    CHUNK_LEVEL = enum.auto()
    REQUEST_LEVEL = enum.auto()


@dataclass
class RequestOffloadingContext:
    policy: OffloadPolicy = OffloadPolicy.CHUNK_LEVEL


@dataclass
class ReqContext:
    req_id: str


@dataclass
class ScheduleEndContext:
    step: int = 0


@dataclass
class OffloadingEvent:
    keys: list[OffloadKey]
    medium: Medium
    removed: bool
    locality: Locality | None = None
    ownership: str | None = None  # None: vLLM's own pool
    removal_expected: bool = False


@dataclass(frozen=True)
class OffloadingMetricMetadata:
    documentation: str
    labelnames: tuple[str, ...] = ()


@dataclass(frozen=True)
class OffloadingCounterMetadata(OffloadingMetricMetadata):
    pass


@dataclass(frozen=True)
class OffloadingGaugeMetadata(OffloadingMetricMetadata):
    pass


@dataclass(frozen=True)
class OffloadingKVEventsConfig:
    enable_kv_cache_events: bool
    self_describing_kv_events: bool


class OffloadingSpec:
    def __init__(self, config):
        self.config = config
        self.kv_events_config = OffloadingKVEventsConfig(bool(getattr(config, "enable_kv_cache_events", False)), False)


def make_offload_key(block_hash, group_index):
    """The hash, then the index of the cache group in 4 bytes, the highest first."""
    return block_hash + group_index.to_bytes(4, "big")

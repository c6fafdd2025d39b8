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


class OffloadingSpec:
    def __init__(self, config):
        self.config = config


def make_offload_key(block_hash, group_index):
    """The hash, then the index of the cache group in 4 bytes, the highest first."""
    return block_hash + group_index.to_bytes(4, "big")

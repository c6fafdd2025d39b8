# SPDX-License-Identifier: Apache-2.0
"""Replica: the base class of secondary tiers, and jobs."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from vllm.v1.kv_offload.base import (
    LookupResult,
    OffloadingEvent,
    OffloadKey,
    ReqContext,
    RequestOffloadingContext,
    ScheduleEndContext,
)


@dataclass
class TransferJob:
    job_id: int
    keys: Collection[OffloadKey]
    chunk_ids: np.ndarray  # int32
    is_promotion: bool
    req_context: ReqContext
    submit_time: float = 0.0


@dataclass
class JobMetadata:
    """The same before v0.30."""

    job_id: int
    keys: Collection[OffloadKey]
    block_ids: np.ndarray  # int64
    is_promotion: bool
    req_context: ReqContext


@dataclass
class JobResult:
    job_id: int
    success: bool
    successful_keys: Collection[OffloadKey] | None = None
    transfer_time: float | None = None
    transfer_bytes: int | None = None


class SecondaryTierManager(ABC):
    medium: ClassVar[Any] = None

    def __init__(
        self, offloading_spec: Any, primary_kv_view: memoryview, tier_type: str, backpressure_detector: Any = None
    ) -> None:
        self._offloading_spec = offloading_spec
        self._primary_kv_view = primary_kv_view
        self.tier_type = tier_type
        self.locality = None
        self._backpressure_detector = backpressure_detector

    @property
    def bp_detector(self) -> Any:
        return self._backpressure_detector

    @abstractmethod
    def lookup(self, key: OffloadKey, req_context: ReqContext) -> LookupResult: ...

    @abstractmethod
    def submit_store(self, job_metadata: TransferJob) -> None: ...

    @abstractmethod
    def submit_load(self, job_metadata: TransferJob) -> None: ...

    @abstractmethod
    def get_finished_jobs(self) -> Iterable[JobResult]: ...

    @abstractmethod
    def on_new_request(self, req_context: ReqContext) -> RequestOffloadingContext: ...

    @abstractmethod
    def drain_jobs(self) -> None: ...

    def has_pending_work(self) -> bool:
        return False

    def take_events(self) -> Iterable[OffloadingEvent]:
        return ()

    def touch(self, keys: Collection[OffloadKey], req_context: ReqContext) -> None:
        return

    def on_request_finished(self, req_context: ReqContext) -> None:
        return

    def on_schedule_end(self, context: ScheduleEndContext) -> None:
        return

    def serve_external_requests(self, parent: Any) -> None:
        return

    def shutdown(self) -> None:
        return

    @classmethod
    def build_metric_definitions(cls, extra_config: dict[str, Any]) -> dict[str, Any]:
        return {}

    def get_stats(self) -> Any:
        return None

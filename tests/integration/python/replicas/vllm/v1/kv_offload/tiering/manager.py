# SPDX-License-Identifier: Apache-2.0
"""Replica: a scheduler around a pool and one tier, which checks the rules: calls never overlap, each job has exactly one
result of its own tier, pinned slots do not change, and an idle engine steps while a tier has work. Events of chunks make
an index, as a router has it, and metrics are those that the tier has declared."""

import mmap
import os
import threading

import numpy as np
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import OffloadingConnectorStats
from vllm.v1.kv_offload.base import (
    LookupResult,
    Medium,
    OffloadingCounterMetadata,
    OffloadingEvent,
    OffloadingSpec,
    ReqContext,
    ScheduleEndContext,
)
from vllm.v1.kv_offload.tiering.base import JobMetadata, TransferJob
from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory


class TieringOffloadingManager:
    """Slots are numbered by the caller. `old_jobs`: as before v0.30."""

    def __init__(self, config, tier_config, slots, row_bytes, old_jobs=False):
        # The pool is shared memory of several processes; a second mapping stands for a worker.
        self.file = os.memfd_create("vllm_offload")
        os.ftruncate(self.file, slots * row_bytes)
        self.pool = mmap.mmap(self.file, slots * row_bytes)
        self.rows = np.frombuffer(self.pool, np.int8).reshape(slots, row_bytes)
        self.worker = np.frombuffer(mmap.mmap(self.file, slots * row_bytes), np.int8).reshape(slots, row_bytes)
        self.old_jobs = old_jobs
        self.jobs = {}  # id: (job, what its slots held)
        self.results = {}
        self.next_job = 0
        self.calling = threading.Lock()
        self.index = set()  # what a router takes the tier to have
        self.definitions = SecondaryTierFactory.get_tier_class(tier_config).build_metric_definitions(tier_config)
        self.metrics = {}
        self.takes_events = bool(getattr(config, "enable_kv_cache_events", False))
        self.tier = SecondaryTierFactory.create_secondary_tier(tier_config, memoryview(self.rows), OffloadingSpec(config))

    def call(self, name, *arguments):
        """A call of the tier, never two at a time."""
        assert self.calling.acquire(blocking=False), "two calls of a tier overlap"
        try:
            return getattr(self.tier, name)(*arguments)
        finally:
            self.calling.release()

    def lookup(self, key, request="r"):
        result = self.call("lookup", key, ReqContext(request))
        assert isinstance(result, LookupResult)
        return result

    def store(self, keys, slots):
        """None: the tier gets no stores while its detector finds it too slow."""
        if self.tier.bp_detector is not None and self.tier.bp_detector.is_under_pressure():
            return None
        return self._submit("submit_store", keys, slots, False)

    def load(self, keys, slots):
        return self._submit("submit_load", keys, slots, True)

    def _submit(self, call, keys, slots, is_promotion):
        number = self.next_job
        self.next_job += 1
        if self.old_jobs:
            job = JobMetadata(number, keys, np.array(slots, np.int64), is_promotion, ReqContext("r"))
        else:
            job = TransferJob(number, keys, np.array(slots, np.int32), is_promotion, ReqContext("r"))
        self.jobs[number] = (job, None if is_promotion else self.rows[slots].copy())
        assert self.call(call, job) is None
        return number

    def step(self):
        """The end of a step, with or without requests."""
        self.call("on_schedule_end", ScheduleEndContext())
        for result in self.call("get_finished_jobs"):
            job, held = self.jobs.pop(result.job_id)  # KeyError: an unknown or repeated id
            ids = job.block_ids if self.old_jobs else job.chunk_ids
            assert held is None or (self.rows[ids] == held).all(), "a pinned slot has changed"
            assert result.successful_keys is None or set(result.successful_keys) <= set(job.keys)
            assert not (result.success and result.successful_keys is not None)
            self.results[result.job_id] = result
        if self.takes_events:
            self._take_events()
        self._take_metrics()

    def _take_events(self):
        for event in self.call("take_events"):
            assert isinstance(event, OffloadingEvent) and isinstance(event.medium, Medium) and event.keys
            assert event.medium != Medium.CPU or event.ownership is not None, "an event of vLLM's own pool"
            keys = set(event.keys)
            if event.removed:
                assert keys <= self.index, "a chunk is removed that was not stored"
                self.index -= keys
            else:
                assert not keys & self.index, "a chunk is stored twice"
                self.index |= keys

    def _take_metrics(self):
        stats = self.call("get_stats")
        if stats is None:
            return
        assert isinstance(stats, OffloadingConnectorStats) and not stats.is_empty()
        for name, values in stats.data["data"].items():
            kind = "counter" if isinstance(self.definitions[name], OffloadingCounterMetadata) else "gauge"
            assert stats.data["types"][name] == kind, name
            for labels, value in values.items():
                assert len(labels) == len(self.definitions[name].labelnames), name
                assert kind == "gauge" or value > 0, name
                self.metrics[name] = value + (self.metrics.get(name, 0) if kind == "counter" else 0)

    def run(self, number, steps=1_000_000):
        """Steps, as an idle engine does, until a job has its result."""
        for _ in range(steps):
            if number in self.results:
                return self.results[number]
            assert self.jobs == {} or self.call("has_pending_work"), "the engine stops stepping while jobs wait"
            self.step()
            threading.Event().wait(0.0001)
        raise AssertionError(f"job {number} has no result")

    def reset_cache(self):
        """After drain_jobs nothing touches the pool, and all results are there."""
        self.call("drain_jobs")
        before = self.rows.copy()
        self.step()
        assert not self.jobs, f"jobs without a result: {self.jobs}"
        assert (before == self.rows).all()

    def shutdown(self):
        """The tier ends before the pool is freed."""
        self.call("shutdown")
        self.step()
        assert not self.jobs, f"jobs without a result: {self.jobs}"
        os.close(self.file)

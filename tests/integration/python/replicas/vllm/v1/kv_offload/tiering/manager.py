# SPDX-License-Identifier: Apache-2.0
"""Replica: a scheduler around a pool and one tier, which checks the rules: calls never overlap, each job has exactly one
result of its own tier, pinned slots do not change, and an idle engine steps while a tier has work."""

import mmap
import os
import threading

import numpy as np
from vllm.v1.kv_offload.base import LookupResult, OffloadingSpec, ReqContext, ScheduleEndContext
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

    def run(self, number, steps=100_000):
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

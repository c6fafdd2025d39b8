# SPDX-License-Identifier: Apache-2.0
"""A secondary tier of vLLM's offloading connector, for vLLM v0.28 and later.

vLLM loads it by ``{"type": "ShmemTier", "module_path": "shmem_kv.adapters.vllm", "exchange": "NAME", "store_bytes": "8G"}``
in ``secondary_tiers``. Blocks that vLLM stores are copied from its CPU pool to the store of this process; blocks that any
engine of the exchange holds are hits.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _exchange_core
from .._store import layout_of
from ._common import logger, name_of, open_store
from ._copies import CopyQueue
from ._holder import HolderWatch
from ._inventory import Inventory
from ._vllm_reports import Reports, metric_definitions, publishes_events

try:
    from vllm.v1.kv_offload.base import LookupResult, RequestOffloadingContext
    from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager
except ImportError as _error:
    _MISSING: ImportError | None = _error
    SecondaryTierManager = object
else:
    _MISSING = None

# Of an engine, and not of the bytes of its blocks.
_NOT_OF_THE_LAYOUT = {
    "data_parallel_index",
    "data_parallel_rank_local",
    "data_parallel_size",
    "enable_kv_cache_events",
    "engine_id",
    "extra_config",
    "num_cpu_blocks",
    "num_gpu_blocks",
    "rank",
}
_MOST_KEY_BYTES = 128  # of an exchange
_MOST_REFUSED = 4096
_MOST_ASKED = 65536
_ANSWER_SECONDS = 5  # vLLM asks for the chunks of a prefix again until it knows all


class ShmemTier(SecondaryTierManager):
    """Stores chunks in this process, and loads those of all members of the exchange.

    ``exchange``: its name. ``store_bytes``: the memory of this tier, such as ``"8G"``. Instead of both, ``holder``: the
    exchange whose holder has the blocks, and ``tenant``. ``namespace``: engines share blocks only if it is equal; further
    words of what they must agree about. ``threads``: those that copy. ``store_wait``: how many seconds a store may wait
    before it is dropped, 0 for no limit. ``enable_kv_events``: whether this tier's blocks are in the events of an engine
    that publishes them. Other options are those of :class:`shmem_kv.Exchange`, and for
    members on other nodes ``listen``, ``members`` and ``answer_time`` of :meth:`shmem_kv.Exchange.connect`.
    """

    def __init__(
        self,
        offloading_spec: Any,
        primary_kv_view: memoryview,
        tier_type: str,
        *,
        exchange: str = "",
        store_bytes: int | str = "1G",
        namespace: str = "",
        threads: int = 1,
        store_wait: float = 1,
        enable_kv_events: bool = True,
        backpressure_detector: Any = None,
        **options: Any,
    ) -> None:
        if _MISSING is not None:
            raise ImportError(f"ShmemTier needs vLLM v0.28 or later: {_MISSING}") from _MISSING
        further = {} if backpressure_detector is None else {"backpressure_detector": backpressure_detector}
        super().__init__(offloading_spec, primary_kv_view, tier_type, **further)
        self._rows: NDArray | None = _rows_of(primary_kv_view)
        self._layout = _layout_of_spec(offloading_spec, self._rows.shape[1], namespace)
        self._asks = "listen" in options or "members" in options  # members on other nodes, which answer later
        self._held = options.get("holder") is not None
        self._copies = CopyQueue(threads, f"shmem-tier-{exchange}", store_wait)
        self._store = open_store(exchange, store_bytes, options)
        with_events = enable_kv_events and publishes_events(offloading_spec)
        self._watch = HolderWatch(self._store, self._layout, with_events) if self._held else None
        self._inventory = (self._watch or Inventory(self._store, self._layout)) if with_events else None
        read_stats = self._store.stats if self._watch is None else self._watch.stats
        self._reports = Reports(tier_type, self._store, read_stats, self._copies, self._inventory)
        self._asking = ThreadPoolExecutor(1, f"shmem-tier-asking-{exchange}")  # its thread starts when it is needed
        self._lock = threading.Lock()  # for all below
        self._finished: deque[Any] = deque()
        # Chunks that lookup() has asked other nodes for: until when they are hits, 0 for a miss, None until it is known.
        self._asked: OrderedDict[bytes, float | None] = OrderedDict()
        self._questions: list[bytes] = []  # of these, for the thread that asks
        # Blocks of other members that could not be loaded, with their epochs: a hit again would never end.
        self._refused: OrderedDict[bytes, tuple[int, int]] = OrderedDict()

    # ---- Called by vLLM, never two at a time ----

    def lookup(self, key: bytes, req_context: Any) -> Any:
        """Answers from memory: that of the store, and the directories of the other members. If there may be members on
        other nodes, a thread asks them, and the answer is there later."""
        name = _name_of_chunk(key)
        if self._store.storing(name):  # asked first: afterwards it is held
            return LookupResult.RETRY
        if not self._held and self._store.holds(name, self._layout):
            self._note_used([name])
            return LookupResult.HIT
        there = self._answer(name) if self._asks else self._there([name])[0]
        return LookupResult.RETRY if there is None else LookupResult.HIT if there else LookupResult.MISS

    def submit_store(self, job_metadata: Any) -> None:
        """Starts copying chunks of the pool to the store, unless storing is slow: then the job fails at once."""
        try:
            self._copies.store(lambda: self._execute(job_metadata, self._save), lambda: self._fail(job_metadata))
        except RuntimeError:  # after shutdown
            self._fail(job_metadata)

    def submit_load(self, job_metadata: Any) -> None:
        """Starts copying chunks to the pool."""
        try:
            self._copies.load(lambda: self._execute(job_metadata, self._load))
        except RuntimeError:
            self._fail(job_metadata)

    def get_finished_jobs(self) -> Iterable[Any]:
        """The results of jobs that have ended, each once. Stores that have waited for too long end here."""
        self._copies.drop_old()
        with self._lock:
            finished = list(self._finished)
            self._finished.clear()
        return finished

    def has_pending_work(self) -> bool:
        """Whether a job runs, or its result waits."""
        if self._copies.is_busy():  # asked first: afterwards its result waits
            return True
        with self._lock:
            return bool(self._finished or None in self._asked.values())

    def drain_jobs(self) -> None:
        """Waits for all jobs."""
        self._copies.drain()

    def on_new_request(self, req_context: Any) -> Any:
        """No preference."""
        return RequestOffloadingContext()

    def touch(self, keys: Collection[bytes], req_context: Any) -> None:
        """Marks chunks as used."""
        names = [_name_of_chunk(key) for key in keys]
        if not (self._held and self._asks):  # then it would ask other nodes; reads count as use anyway
            self._store.touch(names)
        self._note_used(names)

    def take_events(self) -> Iterable[Any]:
        """Which chunks this engine has stored, and which of them were removed, since the last call."""
        return self._reports.events()

    @classmethod
    def build_metric_definitions(cls, extra_config: dict[str, Any]) -> dict[str, Any]:
        """The metrics of :meth:`get_stats`."""
        return metric_definitions()

    def get_stats(self) -> Any:
        """What has changed since the last call."""
        return None if self._store.exchange.closed else self._reports.stats()

    def shutdown(self) -> None:
        """Ends the jobs and leaves the exchange. Results of jobs can still be read."""
        self._copies.shutdown()
        self._asking.shutdown()
        if self._watch is not None:
            self._watch.close()
        self._rows = None  # vLLM frees the pool
        self._store.exchange.close()

    # ---- Chunks of other members ----

    def _there(self, names: list[bytes]) -> list[bool]:
        """Which chunks other members have, as far as they can be loaded."""
        found = self._store.exchange.find(names, self._layout)
        rows = self._rows
        if rows is None:
            return [False] * len(names)
        there = (found.statuses == 0) & (found.sizes == rows.shape[1])
        for i in np.flatnonzero(there):
            block = found[int(i)]
            with self._lock:
                there[i] = self._refused.get(block.key) != (block.member, block.epoch)
        return [bool(one) for one in there]

    def _answer(self, name: bytes) -> bool | None:
        """What other members said about a chunk, a miss once; None: they are asked."""
        with self._lock:
            if name in self._asked:
                until = self._asked[name]
                if until is None or time.monotonic() < until:
                    return None if until is None else True
                del self._asked[name]
                if until == 0:
                    return False
            while len(self._asked) >= _MOST_ASKED and next(iter(self._asked.values())) is not None:
                self._asked.popitem(last=False)  # vLLM has not come back for it
            self._asked[name] = None
            self._questions.append(name)
            if len(self._questions) > 1:
                return None  # the thread will take it
        try:
            self._asking.submit(self._ask)
        except RuntimeError:  # after shutdown
            with self._lock:
                self._questions.clear()
                self._asked.pop(name, None)
            return False
        return None

    def _ask(self) -> None:
        """In a thread of its own, so that answers do not wait for copies."""
        with self._lock:
            names, self._questions = self._questions, []
        try:
            there = self._there(names)
        except Exception:  # the engine waits for an answer
            logger.exception("other members cannot be asked for %d chunks", len(names))
            there = [False] * len(names)
        until = time.monotonic() + _ANSWER_SECONDS
        with self._lock:
            self._asked.update((name, until if one else 0) for name, one in zip(names, there))

    # ---- Jobs ----

    def _execute(self, job: Any, work: Any) -> None:
        begin = time.monotonic()
        keys = list(job.keys)
        try:
            done = work(keys, job)
        except Exception:  # the engine waits for a result
            logger.exception("job %s has failed", job.job_id)
            done = np.zeros(len(keys), bool)
        result = _result(
            job_id=job.job_id,
            success=bool(done.all()),
            successful_keys=[keys[i] for i in np.flatnonzero(done)] if job.is_promotion and not done.all() else None,
            transfer_time=time.monotonic() - begin,
            transfer_bytes=int(done.sum()) * self._rows.shape[1] if self._rows is not None else 0,
        )
        with self._lock:
            self._finished.append(result)

    def _fail(self, job: Any) -> None:
        with self._lock:
            self._finished.append(JobResult(job.job_id, False))

    def _save(self, keys: list[bytes], job: Any) -> NDArray[np.bool_]:
        names = [_name_of_chunk(key) for key in keys]
        stored = self._store.put(names, self._slots(job), self._layout) == 0
        if self._inventory is not None:
            there = np.flatnonzero(stored)
            self._inventory.note_stored([names[i] for i in there], [keys[i] for i in there])
        return stored

    def _note_used(self, names: list[bytes]) -> None:
        if self._inventory is not None:
            self._inventory.note_used(names)

    def _load(self, keys: list[bytes], job: Any) -> NDArray[np.bool_]:
        names = [_name_of_chunk(key) for key in keys]
        statuses = self._store.get(names, self._slots(job), self._layout)
        self._note_used(names)
        with self._lock:
            for i in np.flatnonzero(statuses != 0):
                self._asked.pop(names[i], None)  # not a hit again
        failed = [names[i] for i in np.flatnonzero((statuses != 0) & (statuses != -errno.ENOENT))]
        if failed:
            self._refuse(failed)
        return statuses == 0

    def _refuse(self, names: list[bytes]) -> None:
        found = self._store.exchange.find(names, self._layout)
        for i in np.flatnonzero(found.hits()):
            block = found[int(i)]
            with self._lock:
                self._refused[block.key] = (block.member, block.epoch)
                if len(self._refused) > _MOST_REFUSED:
                    self._refused.popitem(last=False)

    def _slots(self, job: Any) -> _exchange_core.Buffers:
        """The slots of the pool that a job names; vLLM before v0.30 calls them blocks."""
        chunks = np.asarray(job.chunk_ids if hasattr(job, "chunk_ids") else job.block_ids).astype(np.int64)
        rows = self._rows
        if rows is None or len(chunks) != len(job.keys) or (chunks < 0).any() or (chunks >= len(rows)).any():
            raise ValueError(f"the slots {chunks} are not in the pool, or are not as many as the keys")
        addresses = np.uint64(rows.ctypes.data) + chunks.astype(np.uint64) * np.uint64(rows.strides[0])
        return _exchange_core.Buffers.of_ranges(addresses, np.full(len(chunks), rows.shape[1], np.uint64))


def _name_of_chunk(key: bytes) -> bytes:
    """vLLM's key, so that readers of an exchange's or a holder's lists know it."""
    return key if len(key) <= _MOST_KEY_BYTES else name_of(key)


def _rows_of(view: memoryview) -> NDArray:
    """The pool: a row of bytes for each slot."""
    rows = np.asarray(view)
    if rows.ndim != 2 or rows.itemsize != 1 or rows.strides[1] != 1 or not rows.flags.writeable:
        raise ValueError(
            f"vLLM's pool is not a writable memoryview of rows of bytes: {rows.ndim} dimensions of {rows.dtype}"
        )
    return rows


def _layout_of_spec(spec: Any, row_bytes: int, namespace: str) -> int:
    """Of whatever decides about the bytes of a chunk and about the hash in its key."""
    config = getattr(spec, "config", None)
    parts = _parts_of(config) if dataclasses.is_dataclass(config) else {}
    if not namespace and "model" not in parts and "model_name" not in parts:
        raise ValueError(
            'ShmemTier cannot tell the model from this vLLM\'s configuration; add a "namespace" that names it'
        )
    return layout_of(
        engine="vllm", config=parts, row_bytes=row_bytes, namespace=namespace, seed=os.environ.get("PYTHONHASHSEED", "")
    )


def _parts_of(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name not in _NOT_OF_THE_LAYOUT]
        return {name: _parts_of(getattr(value, name)) for name in names}
    if isinstance(value, (list, tuple)):
        return [_parts_of(one) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted(str(_parts_of(one)) for one in value)
    if isinstance(value, dict):
        return sorted((str(name), _parts_of(one)) for name, one in value.items())
    text = str(value)
    if " at 0x" in text:  # nothing but its address
        logger.warning("vLLM's configuration has %s: this engine shares blocks with no other one", text)
    return value if isinstance(value, (bool, int, float, str, type(None))) else text


def _result(**fields: Any) -> Any:
    """A result with the fields that this vLLM has."""
    known = {field.name for field in dataclasses.fields(JobResult)}
    return JobResult(**{name: value for name, value in fields.items() if name in known})

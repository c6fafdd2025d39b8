# SPDX-License-Identifier: Apache-2.0
"""Threads that copy blocks for an adapter."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ._common import logger

_SECONDS_BETWEEN_WARNINGS = 60


class _Job:
    """A load, or a store, which has ``drop``."""

    __slots__ = ("work", "drop", "since")

    def __init__(self, work: Callable[[], None], drop: Callable[[], None] | None) -> None:
        self.work = work
        self.drop = drop
        self.since = time.monotonic()


class CopyQueue:
    """Executes loads before stores, in threads. Thread-safe.

    A store pins memory of the engine until it ends. So stores are dropped by age: one that has waited for more than
    ``store_wait`` seconds, and a new one as long as another one, waiting or copying, is older than that. A copy that has
    begun ends. 0: no store is dropped.
    """

    def __init__(self, threads: int, name: str, store_wait: float) -> None:
        if not 0 <= store_wait < math.inf:
            raise ValueError(f"store_wait is {store_wait} s; give how long a store may wait, or 0 for no limit")
        self._name = name
        self._store_wait = store_wait
        self._pool = ThreadPoolExecutor(threads, name)
        self._lock = threading.Lock()  # for all below
        self._idle = threading.Condition(self._lock)
        self._loads: deque[_Job] = deque()
        self._stores: deque[_Job] = deque()
        self._running: list[_Job] = []
        self._dropping = 0
        self._dropped = 0
        self._next_warning = 0.0

    @property
    def dropped(self) -> int:
        """Stores that were dropped so far."""
        return self._dropped

    def load(self, work: Callable[[], None]) -> None:
        """Executes a load, which raises nothing. Raises RuntimeError after :meth:`shutdown`."""
        self._submit(self._loads, _Job(work, None))

    def store(self, work: Callable[[], None], drop: Callable[[], None]) -> None:
        """Executes a store, or calls ``drop``, also before it returns; neither raises anything. Raises RuntimeError after
        :meth:`shutdown`."""
        self.drop_old()
        if not self._is_late(self.oldest()):
            self._submit(self._stores, _Job(work, drop))
            return
        with self._lock:
            self._dropping += 1
        self._drop([drop])

    def drop_old(self) -> None:
        """Drops the stores that have waited for too long."""
        late: list[Callable[[], None]] = []
        with self._lock:
            while self._stores and self._is_late(time.monotonic() - self._stores[0].since):
                drop = self._stores.popleft().drop
                assert drop is not None
                late.append(drop)
            self._dropping += len(late)
        self._drop(late)

    def oldest(self) -> float:
        """How many seconds ago the oldest store began to wait that has not ended; 0 without one."""
        with self._lock:
            stores = [job.since for job in self._running if job.drop is not None]
            if self._stores:
                stores.append(self._stores[0].since)
            return time.monotonic() - min(stores) if stores else 0

    def is_busy(self) -> bool:
        """Whether a job waits or runs."""
        with self._lock:
            return self._has_jobs()

    def drain(self) -> None:
        """Waits until no job waits or runs."""
        with self._lock:
            while self._has_jobs():
                self._idle.wait()

    def shutdown(self) -> None:
        """Waits for all jobs. Later ones are refused."""
        self._pool.shutdown()

    def _has_jobs(self) -> bool:
        return bool(self._loads or self._stores or self._running or self._dropping)

    def _is_late(self, age: float) -> bool:
        return 0 < self._store_wait < age

    def _submit(self, queue: deque[_Job], job: _Job) -> None:
        with self._lock:
            self._pool.submit(self._execute_next)  # which waits for the lock
            queue.append(job)

    def _execute_next(self) -> None:
        """The job may be another one than that for which the thread was asked, or have been dropped."""
        self.drop_old()
        with self._lock:
            queue = self._loads or self._stores
            if not queue:
                return
            job = queue.popleft()
            self._running.append(job)
        try:
            job.work()
        finally:
            with self._lock:
                self._running.remove(job)
                self._idle.notify_all()

    def _drop(self, drops: list[Callable[[], None]]) -> None:
        """Of jobs that count as being dropped."""
        if not drops:
            return
        with self._lock:
            warn = time.monotonic() >= self._next_warning
            if warn:
                self._next_warning = time.monotonic() + _SECONDS_BETWEEN_WARNINGS
        if warn:
            logger.warning("%s: storing is slow; stores that wait for more than %g s are dropped", self._name, self._store_wait)
        for drop in drops:
            drop()
        with self._lock:
            self._dropping -= len(drops)
            self._dropped += len(drops)
            self._idle.notify_all()

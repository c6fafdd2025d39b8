# SPDX-License-Identifier: Apache-2.0
"""A native plug-in ("native_plugin") of LMCache's multi-process mode, as its second level.

``lmcache server --l2-adapter '{"type": "native_plugin", "module_path": "shmem_kv.adapters.lmcache",
"class_name": "ShmemConnector", "adapter_params": {"exchange": "NAME", "store_bytes": "8G"}}'``
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._store import layout_of
from ._common import logger, name_of, open_store

Completion = tuple[int, bool, str, "list[bool] | None"]


class ShmemConnector:
    """Stores objects in this process, and reads those of all members of the exchange. Any thread may call it.

    ``exchange``: its name. ``store_bytes``: the memory of the store. ``namespace``: what LMCache's keys do not say, and
    servers that share objects must agree about, such as the type of the numbers and the seed of the hashes. ``threads``:
    those that copy. Other parameters are the options of :class:`shmem_kv.Exchange`, and for members on other nodes ``listen``,
    ``members`` and ``answer_time`` of :meth:`shmem_kv.Exchange.connect`.
    """

    def __init__(
        self, exchange: str = "", store_bytes: int | str = "1G", namespace: str = "", threads: int = 2, **options: Any
    ) -> None:
        self._layout = layout_of(engine="lmcache", namespace=namespace)
        self._store = open_store(exchange, store_bytes, options)
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._threads = ThreadPoolExecutor(threads, f"shmem-lmcache-{exchange}")
        self._lock = threading.Lock()  # for all below
        self._next = 0
        self._completions: list[Completion] = []
        self._closed = False

    def event_fd(self) -> int:
        """Readable while there are completions."""
        return self._event

    def submit_batch_get(self, keys: Sequence[str], memoryviews: Sequence[memoryview]) -> int:
        """Starts reading objects. The result has a bool for each key."""
        return self._submit(lambda: (True, self._store.get(self._names(keys), list(memoryviews), self._layout) == 0))

    def submit_batch_set(self, keys: Sequence[str], memoryviews: Sequence[memoryview]) -> int:
        """Starts storing objects. The result is of all of them."""

        def store() -> tuple[bool, NDArray | None]:
            statuses = self._store.put(self._names(keys), list(memoryviews), self._layout)
            if statuses.any():
                failed = statuses[statuses != 0]
                raise OSError(-int(failed[0]), f"{len(failed)} of {len(keys)} objects are not stored")
            return True, None

        return self._submit(store)

    def submit_batch_exists(self, keys: Sequence[str]) -> int:
        """Starts looking for objects. The result has a bool for each key."""
        return self._submit(lambda: (True, self._store.contains(self._names(keys), self._layout)))

    def submit_batch_delete(self, keys: Sequence[str]) -> int:
        """Starts evicting objects of this server. The result has a bool for each key."""
        return self._submit(lambda: (True, self._store.discard(self._names(keys))))

    def drain_completions(self) -> list[Completion]:
        """(id, ok, error, results) of what has ended since the last call, each once."""
        with self._lock:
            if not self._closed:
                try:
                    os.eventfd_read(self._event)
                except BlockingIOError:
                    pass
            completions, self._completions = self._completions, []
            return completions

    def close(self) -> None:
        """Ends what was submitted, leaves the exchange and closes the descriptor. May be called again."""
        self._threads.shutdown()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.close(self._event)
        self._store.exchange.close()

    def _names(self, keys: Sequence[str]) -> list[bytes]:
        return [name_of(key) for key in keys]

    def _submit(self, work: Callable[[], tuple[bool, NDArray | None]]) -> int:
        with self._lock:
            number = self._next
            self._next += 1
        self._threads.submit(self._execute, number, work)
        return number

    def _execute(self, number: int, work: Callable[[], tuple[bool, NDArray | None]]) -> None:
        error = ""
        results: NDArray | None = None
        try:
            ok, results = work()
        except Exception as failure:  # the engine waits for a completion
            ok, error = False, str(failure)
            logger.warning("operation %d has failed: %s", number, failure)
        with self._lock:
            self._completions.append((number, ok, error, None if results is None else np.asarray(results, bool).tolist()))
            os.eventfd_write(self._event, 1)

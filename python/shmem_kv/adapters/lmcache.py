# SPDX-License-Identifier: Apache-2.0
"""The second level of LMCache's multi-process mode, as a plug-in or as a native plug-in.

``lmcache server --l2-adapter '{"type": "plugin", "module_path": "shmem_kv.adapters.lmcache",
"class_name": "ShmemL2Adapter", "adapter_params": {"exchange": "NAME", "store_bytes": "8G"}}'``

With ``"type": "native_plugin"`` and ``"class_name": "ShmemConnector"``, LMCache does not see what the store holds.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._store import layout_of
from ._common import logger, name_of, open_store
from ._copies import CopyQueue
from ._holder import HolderWatch

try:
    from lmcache.v1.distributed.l2_adapters.native_connector_l2_adapter import NativeConnectorL2Adapter
except ImportError as _error:
    _MISSING: ImportError | None = _error
    NativeConnectorL2Adapter = object
else:
    _MISSING = None

Completion = tuple[int, bool, str, "list[bool] | None"]


class ShmemConnector:
    """Stores objects in this process, and reads those of all members of the exchange. Any thread may call it.

    ``exchange``: its name. ``store_bytes``: the memory of the store. Instead of both, ``holder``: the exchange whose holder
    has the objects, and ``tenant``. ``namespace``: what LMCache's keys do not say, and servers that share objects must agree
    about, such as the type of the numbers and the seed of the hashes. ``threads``: those that copy. ``store_wait``: how many seconds a store may wait before it is dropped, 0 for no limit. Other
    parameters are the options of :class:`shmem_kv.Exchange`, and for members on other nodes ``listen``, ``members`` and
    ``answer_time`` of :meth:`shmem_kv.Exchange.connect`.
    """

    def __init__(
        self,
        exchange: str = "",
        store_bytes: int | str = "1G",
        namespace: str = "",
        threads: int = 2,
        store_wait: float = 1,
        **options: Any,
    ) -> None:
        self._layout = layout_of(engine="lmcache", namespace=namespace)
        self._copies = CopyQueue(threads, f"shmem-lmcache-{exchange}", store_wait)
        held = options.get("holder") is not None
        self._store = open_store(exchange, store_bytes, options)
        self._watch = HolderWatch(self._store, self._layout, with_events=False) if held else None
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._lock = threading.Lock()  # for all below
        self._next = 0
        self._completions: list[Completion] = []
        self._closed = False

    def event_fd(self) -> int:
        """Readable while there are completions."""
        return self._event

    def submit_batch_get(self, keys: Sequence[str], memoryviews: Sequence[memoryview]) -> int:
        """Starts reading objects. The result has a bool for each key."""
        return self._load(lambda: (True, self._store.get(self._names(keys), list(memoryviews), self._layout) == 0))

    def submit_batch_set(self, keys: Sequence[str], memoryviews: Sequence[memoryview]) -> int:
        """Starts storing objects. The result is of all of them."""

        def store() -> tuple[bool, NDArray | None]:
            statuses = self._store.put(self._names(keys), list(memoryviews), self._layout)
            if statuses.any():
                failed = statuses[statuses != 0]
                raise OSError(-int(failed[0]), f"{len(failed)} of {len(keys)} objects are not stored")
            return True, None

        number = self._number()
        self._copies.store(
            lambda: self._execute(number, store), lambda: self._complete(number, False, "storing is slow: it was dropped")
        )
        return number

    def submit_batch_exists(self, keys: Sequence[str]) -> int:
        """Starts looking for objects. The result has a bool for each key."""
        return self._load(lambda: (True, self._store.contains(self._names(keys), self._layout)))

    def submit_batch_delete(self, keys: Sequence[str]) -> int:
        """Starts evicting objects of this server. The result has a bool for each key."""
        return self._load(lambda: (True, self._store.discard(self._names(keys))))

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

    def statistics(self) -> dict[str, float]:
        """The contents of the store, what it has done, and what waits. Those of a holder are up to a second old."""
        store = self._store.stats() if self._watch is None else self._watch.stats()
        waiting = {"oldest_store_seconds": round(self._copies.oldest(), 1), "dropped_stores": self._copies.dropped}
        return store._asdict() | waiting

    def close(self) -> None:
        """Ends what was submitted, leaves the exchange and closes the descriptor. May be called again."""
        self._copies.shutdown()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.close(self._event)
        if self._watch is not None:
            self._watch.close()
        self._store.exchange.close()

    def _names(self, keys: Sequence[str]) -> list[bytes]:
        return [name_of(key) for key in keys]

    def _number(self) -> int:
        with self._lock:
            self._next += 1
            return self._next - 1

    def _load(self, work: Callable[[], tuple[bool, NDArray | None]]) -> int:
        number = self._number()
        self._copies.load(lambda: self._execute(number, work))
        return number

    def _execute(self, number: int, work: Callable[[], tuple[bool, NDArray | None]]) -> None:
        error = ""
        results: NDArray | None = None
        try:
            ok, results = work()
        except Exception as failure:  # the engine waits for a completion
            ok, error = False, str(failure)
            logger.warning("operation %d has failed: %s", number, failure)
        self._complete(number, ok, error, None if results is None else np.asarray(results, bool).tolist())

    def _complete(self, number: int, ok: bool, error: str, results: list[bool] | None = None) -> None:
        with self._lock:
            self._completions.append((number, ok, error, results))
            os.eventfd_write(self._event, 1)


class ShmemL2Adapter(NativeConnectorL2Adapter):
    """A plug-in ("plugin") that also tells LMCache what the store holds and has done.

    ``params``: those of :class:`ShmemConnector`. The store evicts by itself, so LMCache's eviction is off.
    """

    def __init__(self, params: dict[str, Any], l1_memory_desc: Any = None, **_: Any) -> None:
        if _MISSING is not None:
            raise ImportError(f"ShmemL2Adapter needs LMCache 0.5.1 or later: {_MISSING}") from _MISSING
        self._connector = ShmemConnector(**params)
        try:
            super().__init__(self._connector, type_name="shmem")
        except BaseException:
            self._connector.close()
            raise

    def get_usage(self) -> Any:
        """The bytes in the store, also those of objects that LMCache has not stored."""
        store = self._connector.statistics()
        return dataclasses.replace(
            super().get_usage(), total_bytes_used=int(store["bytes"]), total_capacity_bytes=int(store["capacity"])
        )

    def report_status(self) -> dict[str, Any]:
        """LMCache's own status, and the statistics of the store."""
        return {**super().report_status(), "store": self._connector.statistics()}

# SPDX-License-Identifier: Apache-2.0
"""What the holder of an exchange has of an engine's blocks, for the events and metrics of the engine."""

from __future__ import annotations

import atexit
import errno
import threading
import time
from collections import deque
from collections.abc import Iterable

from .. import _exchange_core
from .._exchange_errors import ExchangeError
from .._store import Store, StoreStats
from ._common import logger

_BETWEEN_LOOKS = 1.0  # seconds, at statistics
_WAIT_NS = 250_000_000  # for an event; closing waits for it
_BETWEEN_TRIES = 0.1  # seconds, without a holder
_BETWEEN_COMPLAINTS = 10.0
_DOUBT = 2.0  # seconds, far more than this process takes to see that a holder has ended or begun
_MOST_EVENTS = 1024  # of a call
_ABSENT = (-errno.ENOTCONN, -errno.EOWNERDEAD)


class HolderWatch:
    """Follows the holder in a thread, because a caller must not wait for its answers. Thread-safe.

    Blocks that this engine has stored are noted here. The holder's events tell which of them it has removed; if it is gone
    or was started again, a look at its directory does.
    """

    def __init__(self, store: Store, layout: int, with_events: bool) -> None:
        self._store = store
        self._layout = layout
        self._with_events = with_events
        self._stats = store.stats()
        self._lock = threading.Lock()  # for the keys, and for the order of events
        self._keys: dict[bytes, tuple[bytes, float]] = {}  # of the engine, by name, and when they were stored
        self._new: list[bytes] = []  # of these names; they may have been removed before they were noted
        self._events: deque[tuple[bool, bytes]] = deque()
        self._position = (0, 0)
        self._doubt_until = 0.0  # all blocks may be gone
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"shmem-holder-{store.exchange.name}", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # a thread that returns from C++ after the interpreter has ended would end the process

    def stats(self) -> StoreStats:
        """Those of the store, some time ago."""
        return self._stats

    def note_stored(self, names: Iterable[bytes], keys: Iterable[bytes]) -> None:
        """Notes blocks that are in the holder."""
        with self._lock:
            for name, key in zip(names, keys):
                if name not in self._keys:
                    self._new.append(name)
                    self._events.append((False, key))
                self._keys[name] = key, time.monotonic()

    def note_used(self, names: Iterable[bytes]) -> None:
        """The holder itself sees the use of blocks."""

    def take(self) -> list[tuple[bool, list[bytes]]]:
        """Since the last call: whether blocks were removed or stored, and the engine's keys of them."""
        batches: list[tuple[bool, list[bytes]]] = []
        while self._events:
            removed, key = self._events.popleft()
            if not batches or batches[-1][0] != removed:
                batches.append((removed, []))
            batches[-1][1].append(key)
        return batches

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join()
        atexit.unregister(self.close)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._look()
                self._follow(time.monotonic() + _BETWEEN_LOOKS)
            except ExchangeError as error:
                logger.warning("%s: its holder cannot be followed: %s", self._store.exchange, error)
                self._stop.wait(_BETWEEN_COMPLAINTS)
            except Exception:
                if self._store.exchange.closed:
                    return
                logger.exception("%s: its holder cannot be followed", self._store.exchange)
                self._stop.wait(_BETWEEN_COMPLAINTS)

    def _look(self) -> None:
        """A holder that does not answer has no blocks, but has evicted as many as before."""
        stats = self._store.stats()
        self._stats = stats if stats.capacity else stats._replace(evicted=self._stats.evicted)

    def _follow(self, until: float) -> None:
        if not self._with_events:
            self._stop.wait(_BETWEEN_LOOKS)
        while self._with_events and not self._stop.is_set() and time.monotonic() < until:
            code, *position, removals, layouts, names = _exchange_core.read_events(
                self._store.exchange._made, *self._position, _MOST_EVENTS, _WAIT_NS
            )
            self._position = (position[0], position[1])
            if code == -errno.EOVERFLOW or code in _ABSENT:
                self._doubt_until = time.monotonic() + _DOUBT
            is_doubtful = time.monotonic() < self._doubt_until
            with self._lock:
                new, self._new = self._new, []
                doubtful = list(self._keys) if is_doubtful else new
            self._check(doubtful, time.monotonic() - _DOUBT)
            if code > 0:
                gone = [name for gone, layout, name in zip(removals, layouts, names) if gone and layout == self._layout]
                self._check(gone, time.monotonic())
            if code < 0 and code != -errno.EOVERFLOW:
                self._stop.wait(_BETWEEN_TRIES)

    def _check(self, names: list[bytes], before: float) -> None:
        """Notes which of them are no longer there. Those that were stored after `before` are looked at again later: this
        process may not have seen a new holder yet. The lock keeps a block that is stored meanwhile from being missed."""
        for first in range(0, len(names), _MOST_EVENTS):
            with self._lock:
                noted = [name for name in dict.fromkeys(names[first : first + _MOST_EVENTS]) if name in self._keys]
                found = self._store.exchange.find(noted, self._layout).statuses if noted else ()
                for name, status in zip(noted, found):
                    if status == 0:
                        continue
                    if self._keys[name][1] > before:
                        self._new.append(name)
                    else:
                        self._events.append((True, self._keys.pop(name)[0]))

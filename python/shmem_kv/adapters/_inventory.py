# SPDX-License-Identifier: Apache-2.0
"""What a store has of an engine's blocks, for the events of the engine."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from .._store import Store

_MOST_CHECKS = 1024  # of a take(), which takes about a microsecond for each


class Inventory:
    """Notes which blocks were stored, and notices those that the store has evicted since. Thread-safe.

    All blocks of the store are noted here. So if it has fewer, some were evicted: most likely the least recently used,
    which are checked first. A check makes the store take the block as used, so blocks are not checked without need.
    """

    def __init__(self, store: Store, layout: int) -> None:
        self._store = store
        self._layout = layout
        self._lock = threading.Lock()  # for all below
        self._keys: OrderedDict[bytes, bytes] = OrderedDict()  # of the engine, by name; the least recently used first
        self._new: list[bytes] = []

    def note_stored(self, names: Iterable[bytes], keys: Iterable[bytes]) -> None:
        """Notes blocks that are in the store; it may have had them before."""
        with self._lock:
            for name, key in zip(names, keys):
                if name not in self._keys:
                    self._new.append(key)
                self._keys[name] = key
                self._keys.move_to_end(name)

    def note_used(self, names: Iterable[bytes]) -> None:
        """Notes that blocks were used."""
        with self._lock:
            for name in names:
                if name in self._keys:
                    self._keys.move_to_end(name)

    def take(self) -> list[tuple[bool, list[bytes]]]:
        """Since the last call: whether blocks were removed or stored, and the engine's keys of them. A block that was
        removed and stored again meanwhile is in none."""
        with self._lock:
            stored, self._new = self._new, []
            removed: list[bytes] = []
            missing = len(self._keys) - self._store.stats().blocks
            for _ in range(min(len(self._keys), _MOST_CHECKS)):
                if len(removed) >= missing:
                    break
                name, key = next(iter(self._keys.items()))
                if self._store.holds(name, self._layout):
                    self._keys.move_to_end(name)
                else:
                    del self._keys[name]
                    removed.append(key)
            return [(gone, keys) for gone, keys in ((False, stored), (True, removed)) if keys]

# SPDX-License-Identifier: Apache-2.0
"""A store: copies of blocks that a member of an exchange serves, with eviction."""

from __future__ import annotations

import bisect
import errno
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._exchange import Exchange, Keys, _bits, _names
from ._exchange_errors import BlockLeased

_LINE = 64
_PAGE = 4096


class StoreStats(NamedTuple):
    """The contents of a :class:`Store`, and what it has done."""

    blocks: int
    bytes: int
    capacity: int
    stored: int
    evicted: int
    local_hits: int
    remote_hits: int
    misses: int


class _Entry:
    """A block of a store."""

    __slots__ = ("offset", "size", "layout", "ready", "readers")

    def __init__(self, offset: int, size: int, layout: int) -> None:
        self.offset = offset
        self.size = size
        self.layout = layout
        self.ready = False  # its bytes are there, and it is published
        self.readers = 0  # threads of this process that copy it


class Store:
    """Holds copies of blocks in memory of its own, of ``nbytes``, and serves them to the other members of an exchange.

    It is for blocks in memory that cannot be registered, such as an engine's pinned pool. When there is no room, the
    least recently used blocks that nobody reads are evicted. :meth:`get` also reads from the other members. Blocks are
    contents by key: one that is there is not stored again. Thread-safe.
    """

    def __init__(self, exchange: Exchange, nbytes: int) -> None:
        self.exchange = exchange
        """The member that serves the blocks."""
        self._region = exchange.allocate(nbytes)
        self._lock = threading.Lock()  # for all below
        self._room = _Room(nbytes)
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()  # the least recently used first
        self._leaving: dict[bytes, _Entry] = {}  # withdrawn, but leased by readers
        self._bytes = 0
        self._stored = self._evicted = self._local = self._remote = self._missed = 0

    def put(self, keys: Keys, blocks: Any, layout: int = 0) -> NDArray[np.int32]:
        """Copies and publishes blocks: for each key a contiguous array, tensor or memoryview.

        Returns for each 0, ``-errno.ENOSPC`` (no room: what there is, is being read), ``-errno.EBUSY`` (the key is being
        evicted, and still read) or another negative errno. When it returns, other members can read the blocks.
        """
        names, sources = self._arguments("put", keys, blocks, False)
        statuses = np.zeros(len(names), np.int32)
        new: list[int] = []
        entries: list[_Entry] = []
        for i, name in enumerate(names):
            with self._lock:  # for a moment: an engine's scheduler may wait for an answer
                outcome = self._reserve(name, int(sources[1][i]), layout)
            if isinstance(outcome, _Entry):
                new.append(i)
                entries.append(outcome)
            else:
                statuses[i] = outcome
        if not new:
            return statuses
        try:
            offsets = np.array([entry.offset for entry in entries], np.uint64)
            sizes = sources[1][new]
            places = np.empty((len(new), 4), np.uint64)
            places[:, 0], places[:, 1], places[:, 2], places[:, 3] = self._region._number, offsets, sizes, layout
            made = _core.Buffers.of_ranges(offsets + np.uint64(self._region.address), sizes)
            _core.copy(made, _core.Buffers.of_ranges(sources[0][new], sizes))
            statuses[new] = self.exchange._made.publish(tuple(names[i] for i in new), places)
        except BaseException:
            statuses[new] = -errno.ECANCELED
            raise
        finally:
            with self._lock:
                for i, entry in zip(new, entries):
                    self._settle(names[i], entry, bool(statuses[i] == 0))
        return statuses

    def get(self, keys: Keys, blocks: Any, layout: int = 0) -> NDArray[np.int32]:
        """Copies blocks to ``blocks``: from this store, or from the member that has them.

        Returns for each 0, ``-errno.ENOENT`` (nobody has it), ``-errno.EPROTOTYPE`` (only with another layout),
        ``-errno.EMSGSIZE`` (it is not as large as its destination), or what :meth:`Exchange.try_pull` returns.
        """
        names, (addresses, sizes, _keep) = self._arguments("get", keys, blocks, True)
        statuses = np.full(len(names), -errno.ENOENT, np.int32)
        with self._lock:
            here = {i: entry for i, name in enumerate(names) if (entry := self._held(name, layout)) is not None}
            for entry in here.values():
                entry.readers += 1
        try:
            rest = self._get_here(here, addresses, sizes, statuses)
        finally:
            with self._lock:
                for entry in here.values():
                    entry.readers -= 1
        rest += [i for i in range(len(names)) if i not in here]
        if rest:
            self._get_there(names, np.array(sorted(rest)), addresses, sizes, layout, statuses)
        with self._lock:
            self._local += len(names) - len(rest)
            self._remote += int((statuses[rest] == 0).sum()) if rest else 0
            self._missed += int((statuses != 0).sum())
        return statuses

    def contains(self, keys: Keys, layout: int = 0) -> NDArray[np.bool_]:
        """Which blocks this store or another member has. It does not wait."""
        names, _ = _names(keys)
        with self._lock:
            there = np.array([self._held(name, layout) is not None for name in names], bool)
        missing = np.flatnonzero(~there)
        if missing.size > 0:
            there[missing] = self.exchange.find([names[i] for i in missing], layout).statuses == 0
        return there

    def holds(self, key: bytes, layout: int = 0) -> bool:
        """Whether this store itself has a block."""
        with self._lock:
            return self._held(key, layout) is not None

    def storing(self, key: bytes) -> bool:
        """Whether another thread is storing a block, which is not there yet."""
        with self._lock:
            entry = self._entries.get(key)
            return entry is not None and not entry.ready

    def touch(self, keys: Keys) -> None:
        """Marks blocks as used, so that others are evicted first."""
        names, _ = _names(keys)
        with self._lock:
            for name in names:
                if name in self._entries:
                    self._entries.move_to_end(name)

    def discard(self, keys: Keys) -> NDArray[np.bool_]:
        """Evicts blocks. Returns which of them were here. Their memory is used again when nobody reads them."""
        names, _ = _names(keys)
        with self._lock:
            return np.array([self._evict(name) for name in names], bool)

    def clear(self) -> None:
        """Evicts all blocks that nobody in this process reads or stores."""
        with self._lock:
            for name in list(self._entries):
                self._evict(name)

    def stats(self) -> StoreStats:
        """The contents, and what it has done."""
        with self._lock:
            return StoreStats(
                len(self._entries),
                self._bytes,
                self._region.nbytes,
                self._stored,
                self._evicted,
                self._local,
                self._remote,
                self._missed,
            )

    def _arguments(
        self, call: str, keys: Keys, blocks: Any, writable: bool
    ) -> tuple[tuple[bytes, ...], tuple[NDArray, NDArray, object]]:
        names, single = _names(keys)
        if isinstance(blocks, _core.Buffers):
            buffers = blocks
        else:
            given = [blocks] if single else list(blocks)
            buffers = _core.Buffers.of_objects([_bits(call, one) for one in given], writable)
        if buffers.count != len(names):
            raise ValueError(f"{call}: there are {len(names)} keys, but {buffers.count} blocks")
        return names, (buffers.addresses, buffers.sizes, buffers)

    def _get_here(
        self, here: dict[int, _Entry], addresses: NDArray, sizes: NDArray, statuses: NDArray[np.int32]
    ) -> list[int]:
        """Copies blocks of this store. Returns the indices of those that are of another size."""
        right = [i for i, entry in here.items() if entry.size == sizes[i]]
        other = [i for i in here if here[i].size != sizes[i]]
        statuses[other] = -errno.EMSGSIZE
        if right:
            offsets = np.array([here[i].offset for i in right], np.uint64)
            sources = _core.Buffers.of_ranges(offsets + np.uint64(self._region.address), sizes[right])
            _core.copy(_core.Buffers.of_ranges(addresses[right], sizes[right]), sources)
            statuses[right] = 0
        return other

    def _get_there(
        self,
        names: tuple[bytes, ...],
        wanted: NDArray,
        addresses: NDArray,
        sizes: NDArray,
        layout: int,
        statuses: NDArray[np.int32],
    ) -> None:
        """Pulls blocks of other members."""
        found = self.exchange.find([names[i] for i in wanted], layout)
        seen = found.statuses
        missing = seen != 0
        # A block here of another size says more than its absence elsewhere.
        unknown = missing & (statuses[wanted] == -errno.ENOENT)
        statuses[wanted[unknown]] = seen[unknown]
        wrong = ~missing & (found.sizes != sizes[wanted])
        statuses[wanted[wrong]] = -errno.EMSGSIZE
        right = np.flatnonzero(~missing & ~wrong)
        if right.size > 0:
            places = wanted[right]
            buffers = _core.Buffers.of_ranges(addresses[places], sizes[places])
            statuses[places] = self.exchange.try_pull(found.select(right), buffers)

    # ---- With the lock ----

    def _held(self, name: bytes, layout: int) -> _Entry | None:
        entry = self._entries.get(name)
        if entry is None or not entry.ready or (layout != 0 and entry.layout != layout):
            return None
        self._entries.move_to_end(name)
        return entry

    def _reserve(self, name: bytes, size: int, layout: int) -> _Entry | int:
        """Room for a block, or the status of one that needs none."""
        if not 1 <= len(name) <= 128 or size == 0:
            return -errno.EINVAL
        entry = self._entries.get(name)
        if entry is not None and (entry.size, entry.layout) != (size, layout):
            if not self._evict(name):
                return -errno.EBUSY
            entry = None
        if entry is not None:
            self._entries.move_to_end(name)
            return 0  # here, or being stored by another thread
        self._retry_leaving()
        if name in self._leaving:
            return -errno.EBUSY
        offset = self._allocate(size)
        if offset is None:
            return -errno.ENOSPC
        entry = self._entries[name] = _Entry(offset, size, layout)
        self._bytes += size
        return entry

    def _allocate(self, size: int) -> int | None:
        if size > self._region.nbytes:
            return None
        while True:
            full = len(self._entries) + len(self._leaving) >= self.exchange.most_blocks
            offset = None if full else self._room.take(size)
            if offset is not None:
                return offset
            if not any(self._evict(name) for name in list(self._victims())):
                return None

    def _victims(self) -> Sequence[bytes]:
        """The next block to evict, or nothing."""
        for name, entry in self._entries.items():
            if entry.ready and entry.readers == 0:
                return (name,)
        return ()

    def _evict(self, name: bytes) -> bool:
        """Withdraws a block. False: there is none, or this process uses it."""
        entry = self._entries.get(name)
        if entry is None or not entry.ready or entry.readers > 0:
            return False
        del self._entries[name]
        self._bytes -= entry.size
        self._evicted += 1
        if not self._withdraw(name, entry):
            self._leaving[name] = entry
        return True

    def _withdraw(self, name: bytes, entry: _Entry) -> bool:
        try:
            self.exchange.withdraw(name, 0)
        except BlockLeased:
            return False
        self._room.give(entry.offset, entry.size)
        return True

    def _retry_leaving(self) -> None:
        for name in list(self._leaving):
            if self._withdraw(name, self._leaving[name]):
                del self._leaving[name]

    def _settle(self, name: bytes, entry: _Entry, stored: bool) -> None:
        """After a block was copied and published, or not."""
        entry.ready = stored
        if stored:
            self._stored += 1
            return
        del self._entries[name]
        self._bytes -= entry.size
        self._room.give(entry.offset, entry.size)


class _Room:
    """The free parts of a range of bytes."""

    def __init__(self, nbytes: int) -> None:
        self._offsets = [0]  # sorted; parts do not adjoin
        self._sizes = [nbytes]

    def take(self, size: int) -> int | None:
        """The first part that is large enough. Copies are fast where source and destination begin at the same place of
        a page, which large blocks of engines do at its beginning."""
        size = _rounded(size)
        for i, free in enumerate(self._sizes):
            if free >= size:
                offset = self._offsets[i]
                if free == size:
                    del self._offsets[i], self._sizes[i]
                else:
                    self._offsets[i] += size
                    self._sizes[i] -= size
                return offset
        return None

    def give(self, offset: int, size: int) -> None:
        """Takes a part back."""
        size = _rounded(size)
        i = bisect.bisect_left(self._offsets, offset)
        if i < len(self._offsets) and offset + size == self._offsets[i]:
            size += self._sizes[i]
            del self._offsets[i], self._sizes[i]
        if i > 0 and self._offsets[i - 1] + self._sizes[i - 1] == offset:
            self._sizes[i - 1] += size
        else:
            self._offsets.insert(i, offset)
            self._sizes.insert(i, size)


def _rounded(size: int) -> int:
    unit = _LINE if size < _PAGE else _PAGE
    return -(-size // unit) * unit


def layout_of(**parts: object) -> int:
    """A layout for :meth:`Exchange.publish` and :meth:`Exchange.find`: a number from the names and values of whatever
    owner and reader must agree about, such as ``layout_of(model="m", dtype="bfloat16", tp=(0, 2))``. Values count as
    their ``repr``."""
    text = "\n".join(f"{name}={value!r}" for name, value in sorted(parts.items()))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1

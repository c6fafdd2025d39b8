# SPDX-License-Identifier: Apache-2.0
"""A store: copies of blocks that a member of an exchange serves, or the holder of it, with eviction."""

from __future__ import annotations

import errno
import hashlib
import math
import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _exchange_core
from ._exchange import Exchange, Keys, _bits, _names, check_layout


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


class Store:
    """Holds copies of blocks, and serves them to the other members of an exchange.

    ``Store(exchange, nbytes)`` has memory of its own, which ends with the process. ``Store(holder="NAME")`` puts blocks
    into the holder of the exchange NAME (``kv_exchange hold NAME``), where they outlive the process, and equal blocks of
    several processes are stored once.

    It is for blocks in memory that cannot be registered, such as an engine's pinned pool. When there is no room, the
    least recently used blocks without readers are evicted. :meth:`get` also reads from the other members. Blocks are
    contents by key: one that is there is not stored again. Thread-safe.

    With ``holder``: ``exchange`` may be a member of it; else one is made, in ``directory`` (as of :class:`Exchange`).
    ``tenant``: whose limit in the holder counts. ``answer_time``: how many seconds calls wait for a holder that does not
    answer, by default 0.1.
    """

    def __init__(
        self,
        exchange: Exchange | None = None,
        nbytes: int = 0,
        *,
        holder: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        tenant: str = "",
        answer_time: float = 0,
    ) -> None:
        self._region = None
        self._made: _exchange_core.Store | _exchange_core.HeldStore
        if holder is not None:
            if nbytes != 0 or (exchange is not None and (exchange.name != holder or directory is not None)):
                raise ValueError("Store: with a holder there are no nbytes, and the exchange is that of the holder")
            self.exchange = exchange or Exchange(holder, directory=directory)
            """The member that serves or reads the blocks."""
            self._made = _exchange_core.HeldStore(self.exchange._made, tenant, math.ceil(answer_time * 1000))
            return
        if exchange is None or directory is not None or tenant or answer_time:
            raise ValueError("Store: it needs an exchange, or a holder, which alone has a directory, tenant and answer_time")
        self.exchange = exchange
        self._region = exchange.allocate(nbytes)
        # In C++, so that no exception, of a signal handler for instance, comes between publishing a block and noting it.
        self._made = _exchange_core.Store(exchange._made, self._region._number, self._region.address, nbytes, exchange.most_blocks)

    def put(self, keys: Keys, blocks: Any, layout: int = 0) -> NDArray[np.int32]:
        """Copies and publishes blocks: for each key a contiguous array, tensor or memoryview.

        Returns for each 0, ``-errno.ENOSPC`` (no room: what there is, is being read), ``-errno.EBUSY`` (the key is being
        evicted, and still read) or another negative errno. A store with a holder that is not there or does not answer
        returns ``-errno.ENOTCONN``, ``-errno.EOWNERDEAD`` or ``-errno.ETIMEDOUT``, and does not wait for it again. When it returns, other members can read the blocks whose
        status is 0. It waits for other threads that store one of them. If it raises, a block is both stored and published, or
        neither.
        """
        names, sources = self._arguments("put", keys, blocks, False)
        check_layout("put", layout)
        return self._made.put(names, sources, layout)

    def get(self, keys: Keys, blocks: Any, layout: int = 0) -> NDArray[np.int32]:
        """Copies blocks to ``blocks``: from this store, or from the member that has them.

        Returns for each 0, ``-errno.ENOENT`` (no member has it), ``-errno.EPROTOTYPE`` (only with another layout),
        ``-errno.EMSGSIZE`` (it is not as large as its destination), or what :meth:`Exchange.try_pull` returns.
        """
        names, destinations = self._arguments("get", keys, blocks, True)
        check_layout("get", layout)
        statuses = self._made.get(names, destinations, layout)
        rest = np.flatnonzero(statuses)
        if rest.size > 0:
            self._get_there(names, rest, destinations, layout, statuses)
            self._made.note_others(int((statuses[rest] == 0).sum()), int((statuses != 0).sum()))
        return statuses

    def contains(self, keys: Keys, layout: int = 0) -> NDArray[np.bool_]:
        """Which blocks this store or another member has. It does not wait."""
        names, _ = _names(keys)
        check_layout("contains", layout)
        there = self._made.contains(names, layout)
        missing = np.flatnonzero(~there)
        if missing.size > 0:
            there[missing] = self.exchange.find([names[i] for i in missing], layout).statuses == 0
        return there

    def holds(self, key: bytes, layout: int = 0) -> bool:
        """Whether this store itself has a block; with a holder, whether any member has it."""
        return self._made.holds(key, layout)

    def storing(self, key: bytes) -> bool:
        """Whether another thread is storing a block, which is not there yet."""
        return self._made.storing(key)

    def touch(self, keys: Keys) -> None:
        """Marks blocks as used, so that others are evicted first."""
        self._made.touch(_names(keys)[0])

    def discard(self, keys: Keys) -> NDArray[np.bool_]:
        """Evicts blocks. Returns which of them were here. Their memory is used again when no member reads them. With a holder:
        blocks of the layouts that this store has put or got, whoever has put them."""
        return self._made.discard(_names(keys)[0])

    def clear(self) -> None:
        """Evicts all blocks that no call of this process reads or stores; with a holder all of the tenant, but pinned ones.
        """
        self._made.clear()

    def stats(self) -> StoreStats:
        """The contents, and what it has done. With a holder: its contents, capacity and evictions, and what this store has
        done; ``stored`` are blocks that it did not have before."""
        return StoreStats(*self._made.stats())

    def _arguments(self, call: str, keys: Keys, blocks: Any, writable: bool) -> tuple[tuple[bytes, ...], _exchange_core.Buffers]:
        names, single = _names(keys)
        if isinstance(blocks, _exchange_core.Buffers):
            buffers = blocks
        else:
            given = [blocks] if single else list(blocks)
            buffers = _exchange_core.Buffers.of_objects([_bits(call, one) for one in given], writable)
        if buffers.count != len(names):
            raise ValueError(f"{call}: there are {len(names)} keys, but {buffers.count} blocks")
        return names, buffers

    def _get_there(
        self,
        names: tuple[bytes, ...],
        wanted: NDArray,
        destinations: _exchange_core.Buffers,
        layout: int,
        statuses: NDArray[np.int32],
    ) -> None:
        """Pulls blocks of other members."""
        addresses, sizes = destinations.addresses, destinations.sizes
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
            buffers = _exchange_core.Buffers.of_ranges(addresses[places], sizes[places])
            statuses[places] = self.exchange.try_pull(found.select(right), buffers)


def layout_of(**parts: object) -> int:
    """A layout for :meth:`Exchange.publish` and :meth:`Exchange.find`: a number from the names and values of whatever
    owner and reader must agree about, such as ``layout_of(model="m", dtype="bfloat16", tp=(0, 2))``. Values count as
    their ``repr``. Raises TypeError for one whose ``repr`` differs from process to process: a set, or an object that
    shows its address."""
    for name, value in parts.items():
        _check_part(name, value)
    text = "\n".join(f"{name}={value!r}" for name, value in sorted(parts.items()))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") or 1


def _check_part(name: str, value: object) -> None:
    if isinstance(value, (set, frozenset)):
        raise TypeError(f"layout_of: {name} has a set, whose order differs from process to process; use sorted()")
    if isinstance(value, dict):
        for one in (*value.keys(), *value.values()):
            _check_part(name, one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _check_part(name, one)
    elif not isinstance(value, (str, bytes)) and " at 0x" in repr(value):
        raise TypeError(f"layout_of: {name} has {value!r}, which shows an address; use its name or its values")

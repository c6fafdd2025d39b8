# SPDX-License-Identifier: Apache-2.0
"""Exchanges: processes that start and end independently pull blocks from each other by key."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import math
import mmap
import os
import threading
from collections.abc import Generator, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _exchange_core
from ._dlpack import as_bits
from ._exchange_errors import Canceled, ExchangeError, UnsupportedMemory, WrongSize, raise_first

Key = Union[bytes, str]
Keys = Union[Key, Sequence[Key]]

_FOREVER = (1 << 64) - 1
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | 0x10  # F_SEAL_FUTURE_WRITE: other members can only read it
_PAGE_OF_LIST = 1024
_MOST_BLOCKS = 65536  # the default


class Member(NamedTuple):
    """Another member of an exchange."""

    seat: int
    """0 to 63, on other nodes 64 and more. A later member may get the seat of an earlier one."""
    id: int
    """Of this start of the process; never the same again."""
    pid: int
    """In this process's PID namespace; 0: in none that it sees."""
    blocks: int
    """Published at the moment."""
    bytes: int
    """Of those blocks."""
    most_blocks: int
    """How many it may publish."""
    refusals: int
    """Entries of it that made no sense, and blocks whose memory could not be read."""


class Block(NamedTuple):
    """A block of another member, as it was found."""

    key: bytes
    bytes: int
    layout: int
    seat: int
    """Of its owner."""
    member: int
    """The owner's ``Member.id``."""
    epoch: int
    """It grows when the block is withdrawn and when its entry is used again."""


class ExchangeStats(NamedTuple):
    """Counters of a member since it has joined; the first six are of now."""

    members: int
    readers: int
    seat: int
    id: int
    blocks: int
    bytes: int
    published: int
    withdrawn: int
    leases_expired: int
    refused: int
    found: int
    missed: int
    pulled_blocks: int
    pulled_bytes: int
    failed_stale: int
    failed_dead: int
    failed_corrupt: int
    failed_other: int
    over_quota: int
    metrics_port: int
    """0: it does not answer requests for metrics."""
    failed_timeout: int
    """Pulls of blocks whose owner, on another node, did not answer in time."""
    unreachable: int
    """Addresses given to :meth:`Exchange.connect` at which no member has answered for 5 seconds, now."""


class Region:
    """Registered memory, of which blocks can be published. :meth:`array` and :attr:`memory` are views of it, which stay
    valid after the end of the exchange."""

    def __init__(self, exchange: Exchange, number: int, nbytes: int, memory: memoryview | None, owner: object) -> None:
        self._exchange = exchange
        self._number = number
        self._owner = owner  # of the memory
        self.nbytes = nbytes
        """Its size."""
        self._memory = memory
        self.address: int = 0 if memory is None else int(_exchange_core.Buffers.of_objects([memory], False).addresses[0])
        """Where this process has it mapped; 0: the exchange does not know."""

    @property
    def memory(self) -> memoryview:
        """Its bytes. Raises ValueError if it was registered without ``buffer``."""
        if self._memory is None:
            raise ValueError("memory: the region was registered without its buffer")
        return self._memory

    def array(self, shape: int | tuple[int, ...], dtype: Any = np.uint8, offset: int = 0) -> NDArray:
        """An array of NumPy of a part of it. ``torch.from_numpy`` makes a tensor of the same memory."""
        return np.ndarray(shape, dtype, self.memory, offset)

    def part(self, offset: int, nbytes: int) -> RegionPart:
        """A part of it, for :meth:`Exchange.publish`; also of memory that this process has not mapped."""
        if offset < 0 or nbytes < 1 or offset + nbytes > self.nbytes:
            raise ValueError(f"part: {nbytes} bytes at {offset} are not in a region of {self.nbytes} bytes")
        return RegionPart(self, offset, nbytes)

    def unregister(self) -> None:
        """Ends the registration. Its blocks have been withdrawn. Views of the memory stay valid."""
        self._exchange._unregister(self)

    def __len__(self) -> int:
        return self.nbytes


class RegionPart(NamedTuple):
    """A part of a :class:`Region`."""

    region: Region
    offset: int
    nbytes: int


class Found:
    """Blocks that :meth:`Exchange.find` has looked for, in the order of the keys."""

    def __init__(self, keys: tuple[bytes, ...], made: _exchange_core.Found) -> None:
        self._keys = keys
        self._made = made

    @property
    def statuses(self) -> NDArray[np.int32]:
        """For each key 0 or why it was not found: ``-errno.ENOENT``, ``-errno.EPROTOTYPE`` (another layout) or
        ``-errno.EDQUOT`` (found, but not leased)."""
        return self._made.statuses

    @property
    def sizes(self) -> NDArray[np.uint64]:
        """The bytes of each block; 0 if it was not found."""
        return self._made.sizes

    @property
    def layouts(self) -> NDArray[np.uint64]:
        """The layout of each block."""
        return self._made.layouts

    def hits(self) -> NDArray[np.bool_]:
        """Which keys were found."""
        return self._made.members != 0

    def check(self) -> Found:
        """Raises for the first key that was not found, or not leased; returns itself."""
        raise_first("find", self.statuses)
        return self

    def select(self, indices: Sequence[int] | NDArray) -> Found:
        """Some of the blocks, by index. Leases stay with the original."""
        chosen = [int(i) for i in indices]
        return Found(tuple(self._keys[i] for i in chosen), self._made.select(chosen))

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: int) -> Block:
        if index < 0:
            index += len(self)
        one = self._made.select([index])
        return Block(
            self._keys[index],
            int(one.sizes[0]),
            int(one.layouts[0]),
            int(one.seats[0]),
            int(one.members[0]),
            int(one.epochs[0]),
        )

    def __iter__(self) -> Iterator[Block]:
        return (self[i] for i in range(len(self)))


class Transfer:
    """A pull in the background. It keeps its destinations; if all references to it are dropped, a pull that has not
    begun is cancelled, and one that runs ends first."""

    def __init__(self, made: _exchange_core.Transfer) -> None:
        self._made = made

    def test(self) -> bool:
        """Whether it is over. Raises what :meth:`Exchange.pull` would have raised."""
        if not self._made.test():
            return False
        self._raise()
        return True

    def wait(self, timeout: float | None = None) -> None:
        """Waits for its end, for at most ``timeout`` seconds. Raises TimeoutError, or what a pull would have raised."""
        if not self._made.wait(_nanoseconds(timeout)):
            raise TimeoutError(errno.ETIMEDOUT, f"wait: the transfer is not over after {timeout} s")
        self._raise()

    @property
    def statuses(self) -> NDArray[np.int32]:
        """For each block 0 or a negative errno. Raises RuntimeError before the end."""
        if not self._made.test():
            raise RuntimeError("statuses: the transfer is not over")
        return self._made.statuses

    def __await__(self) -> Generator[Any, None, None]:
        # A thread of the loop's executor waits. If the task is cancelled the transfer goes on.
        if not self._made.test():
            yield from asyncio.get_running_loop().run_in_executor(None, self._made.wait, _FOREVER).__await__()
        self._raise()

    def _raise(self) -> None:
        if self._made.error == -errno.ECANCELED:
            raise Canceled(errno.ECANCELED, "the exchange was closed before the transfer began")
        raise_first("pull", self._made.statuses)


class Exchange:
    """A member of the exchange ``name``, which exists while it has members: 1 to 48 letters, digits, '.', '_' or '-'.

    It needs neither a launcher nor :func:`shmem_kv.init`. All members are processes of one user on one node, and of
    other nodes after :meth:`connect`. Use it as a context manager, or :meth:`close` it. Any thread may make any call at any time; other threads run meanwhile.

    ``blocks``: the most that it publishes at a time. ``leases``: the blocks of it that each reader may keep leased;
    ``lease_time``: their longest lease in seconds. ``transfers``: its pulls that wait or run in the background.
    ``join_time``: how many seconds to wait for members that do not answer. 0 is the default of each. ``metrics``: answer
    HTTP requests for /metrics at this port of 127.0.0.1, or address and port. ``directory``: a folder in which members
    meet that are in different namespaces of one machine, as in containers (SHMEM_EXCHANGE_DIR).

    Keys are bytes (1 to 128), or text, which is encoded as UTF-8. Calls with several keys take one or a sequence.
    Raises subclasses of :class:`ExchangeError`, ValueError for arguments, RuntimeError after :meth:`close`.
    """

    def __init__(
        self,
        name: str,
        *,
        blocks: int = 0,
        leases: int = 0,
        lease_time: float = 0,
        transfers: int = 0,
        join_time: float = 0,
        metrics: int | str | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        self.name = name
        """Of the exchange."""
        self.most_blocks: int = blocks or _MOST_BLOCKS
        """How many blocks it may publish at a time."""
        self._made = _exchange_core.Exchange(
            name,
            blocks,
            leases,
            _milliseconds("lease_time", lease_time),
            transfers,
            _milliseconds("join_time", join_time),
            None if metrics is None else str(metrics),
            None if directory is None else os.fspath(directory),
        )
        self._lock = threading.Lock()  # for the next
        self._regions: list[Region] = []

    # ---- Members on other nodes ----

    def connect(
        self,
        members: str | Sequence[str] = (),
        *,
        listen: str | None = None,
        secret: str | None = None,
        answer_time: float = 0,
    ) -> None:
        """Connects this member with those of the same exchange on other nodes, through UCX. Once.

        ``members``: addresses ("host:port") of some of them; each tells of the others. ``listen``: where this member
        listens; by default at an address of its node, any port (:attr:`address`). ``secret``: what all members know; by
        default ``SHMEM_UID_SECRET``. ``answer_time``: how many seconds calls wait for a member that does not answer, by
        default 5. Afterwards :meth:`find` asks those members as well, and waits for their answers. Raises ValueError,
        or ExchangeError, for instance with ``errno.EACCES`` if a member has another secret.
        """
        addresses = [members] if isinstance(members, str) else list(members)
        if not 0 <= answer_time <= 600:
            raise ValueError(f"answer_time is {answer_time} s; the most are 600")
        try:
            self._made.connect(listen, ",".join(addresses), secret, math.ceil(answer_time * 1000))
        except UnsupportedMemory as error:  # the same errno: built without UCX
            raise ExchangeError(*error.args) from None

    @property
    def address(self) -> str:
        """Where members of other nodes reach this one, after :meth:`connect`."""
        return self._made.address

    # ---- Blocks of this member ----

    def allocate(self, nbytes: int) -> Region:
        """New memory, of zeros, that other members can only read. It is in pages that are taken when they are used."""
        if nbytes < 1:
            raise ValueError(f"allocate: {nbytes} bytes; at least 1 is needed")
        file = os.memfd_create(f"shmem-exchange-{self.name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(file, nbytes)
            mapping = mmap.mmap(file, nbytes)
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
            return self._register(file, nbytes, 0, memoryview(mapping), mapping)
        finally:
            os.close(file)

    def register(self, file: int, nbytes: int, offset: int = 0, buffer: Any = None) -> Region:
        """Registers memory that the caller has: ``nbytes`` at ``offset`` of the file behind a descriptor.

        The file is a memfd, or one in /dev/shm, another tmpfs or hugetlbfs; the descriptor may be closed afterwards.
        ``buffer``: where this process has these bytes mapped, so that :meth:`publish` knows parts of it. Readers read a
        memfd that is sealed against shrinking directly, and other files by a system call for each block. Raises
        UnsupportedMemory for other files. Memory that no descriptor names (of ``malloc``) cannot be registered; a
        :class:`Store` copies it.
        """
        memory = None
        if buffer is not None:
            memory = memoryview(_bits("register", buffer)).cast("B")
            if memory.nbytes != nbytes:
                raise ValueError(f"register: the buffer has {memory.nbytes} bytes, not {nbytes}")
        return self._register(file, nbytes, offset, memory, buffer)

    def publish(self, keys: Keys, blocks: Any, layout: int = 0) -> None:
        """Publishes blocks: from now on their bytes do not change until :meth:`withdraw` has returned.

        ``blocks``: for each key a :class:`RegionPart`, or a contiguous array, tensor or memoryview of registered memory.
        ``layout``: a number that stands for model, type and geometry; readers who expect another one get an error.
        Raises KeyInUse, BlockLeased (the key is still being withdrawn), NoRoom, or ValueError. The other blocks are
        published all the same; ``statuses`` of the exception tells.
        """
        names, single = _names(keys)
        given = [blocks] if single else list(blocks)
        if len(given) != len(names):
            raise ValueError(f"publish: there are {len(names)} keys, but {len(given)} blocks")
        check_layout("publish", layout)
        places = np.array([(*self._place(block), layout) for block in given], np.uint64).reshape(-1, 4)
        if (places[:, 2] == 0).any():
            raise ValueError(f"publish: block {int(np.flatnonzero(places[:, 2] == 0)[0])} has no bytes")
        statuses = self._made.publish(names, places)
        if (statuses == -errno.EINVAL).any():
            raise ValueError("publish: a key has no byte, or more than 128")
        raise_first("publish", statuses)

    def withdraw(self, keys: Keys, timeout: float | None = None) -> None:
        """Withdraws blocks, and returns when no reader has a lease of them: then their memory may be changed.

        Readers find them no more as soon as the call begins. Leases end after the ``lease_time`` of this member at the
        latest, so the call ends without ``timeout``, too. Raises BlockLeased after ``timeout`` seconds, or
        BlockNotFound for a key that is not published; the others are withdrawn.
        """
        names, _ = _names(keys)
        self._made.withdraw(names, _nanoseconds(timeout))

    # ---- Blocks of other members ----

    def find(self, keys: Keys, layout: int = 0, lease: float = 0) -> Found:
        """Looks for blocks among all other members. On one node it makes no system call and does not wait.

        ``layout`` 0 means any. With ``lease`` the blocks that are found are leased for so many seconds, or as long as
        their owners allow, so that a later pull finds them unchanged; :meth:`release` them.
        """
        names, _ = _names(keys)
        check_layout("find", layout)
        return Found(names, self._made.find(names, layout, _milliseconds("lease", lease)))

    def release(self, found: Found) -> None:
        """Ends the leases of blocks."""
        self._made.release(_found("release", found)._made)

    def pull(self, found: Found, destinations: Any) -> None:
        """Copies blocks of other members to ``destinations``: for each key a writable, contiguous array, tensor or
        memoryview, exactly as large as the block.

        For what has not arrived, raises the class of the first cause (BlockNotFound, StaleBlock, OwnerDied ...), with
        ``statuses``. The bytes of a destination that failed are undefined. WrongSize: nothing was copied.
        """
        raise_first("pull", self.try_pull(found, destinations))

    def try_pull(self, found: Found, destinations: Any) -> NDArray[np.int32]:
        """Like :meth:`pull`, but returns the statuses."""
        buffers = _buffers_for(found, destinations)
        return self._made.pull(found._made, buffers)

    def start_pull(self, found: Found, destinations: Any) -> Transfer:
        """Begins what :meth:`pull` does and returns. Transfers are executed in their order. Raises TooManyTransfers."""
        buffers = _buffers_for(found, destinations)
        return Transfer(self._made.start_pull(found._made, buffers))

    # ---- Members ----

    def members(self) -> list[Member]:
        """The other members, by seat."""
        return [Member(*row) for row in self._made.members()]

    def blocks_of(self, seat: int) -> Iterator[Block]:
        """The blocks of the member on a seat. Those that come or go meanwhile may be missing. Raises BlockNotFound if
        no member is on it."""
        cursor = 0
        while True:
            cursor, keys, made = self._made.list_blocks(seat, cursor, _PAGE_OF_LIST)
            if not keys:
                return
            yield from Found(tuple(keys), made)

    def stats(self) -> ExchangeStats:
        """The counters of this member."""
        return ExchangeStats(**self._made.stats())

    def member_stats(self, seat: int) -> ExchangeStats:
        """The counters of another member of this node, as that member says; ``members``, ``readers`` and
        ``metrics_port`` are 0. Raises BlockNotFound if no member is on the seat, and ExchangeError with
        ``errno.ENOTSUP`` for a member on another node."""
        try:
            return ExchangeStats(**self._made.member_stats(seat))
        except UnsupportedMemory as error:  # the same errno
            raise ExchangeError(*error.args) from None

    def close(self) -> None:
        """Leaves the exchange, after calls of other threads. May be called again."""
        self._made.close()

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._made.closed

    def __enter__(self) -> Exchange:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<shmem_kv.Exchange {self.name!r}{', closed' if self.closed else ''}>"

    def _register(self, file: int, nbytes: int, offset: int, memory: memoryview | None, owner: object) -> Region:
        region = Region(self, self._made.register_file(file, nbytes, offset), nbytes, memory, owner)
        with self._lock:
            self._regions.append(region)
        return region

    def _unregister(self, region: Region) -> None:
        self._made.unregister(region._number)
        with self._lock:
            self._regions.remove(region)

    def _place(self, block: Any) -> tuple[int, int, int]:
        """Region, offset and bytes of a block."""
        if isinstance(block, RegionPart):
            if block.region._exchange is not self:
                raise ValueError("publish: the region is of another exchange")
            return block.region._number, block.offset, block.nbytes
        buffers = _exchange_core.Buffers.of_objects([_bits("publish", block)], False)
        address, nbytes = int(buffers.addresses[0]), int(buffers.sizes[0])
        with self._lock:
            for region in self._regions:
                end = region.address + region.nbytes
                if region.address != 0 and region.address <= address and address + nbytes <= end:
                    return region._number, address - region.address, nbytes
        raise ValueError(
            "publish: the block is not in registered memory; use memory of allocate() or register(), or a Store"
        )


def _names(keys: Keys) -> tuple[tuple[bytes, ...], bool]:
    """The keys as bytes, and whether it is a single one."""
    if isinstance(keys, (bytes, str)):
        return (keys.encode() if isinstance(keys, str) else keys,), True
    return tuple(key.encode() if isinstance(key, str) else key for key in keys), False


def _bits(call: str, block: Any) -> Any:
    """An object with the buffer protocol that shares the memory of any array."""
    if isinstance(block, np.ndarray) or not hasattr(block, "__dlpack__"):
        return memoryview(block) if not isinstance(block, np.ndarray) else block
    array = as_bits(block)[0]
    if not array.flags.c_contiguous:
        raise ValueError(f"{call}: an array is not contiguous (C order)")
    return array


def check_layout(call: str, layout: int) -> None:
    """Raises ValueError unless it is a number of 64 bits."""
    if not 0 <= layout < 1 << 64:
        raise ValueError(f"{call}: layout is {layout}; it is from 0 to 2^64 - 1")


def _found(call: str, found: Found) -> Found:
    if not isinstance(found, Found):
        raise TypeError(f"{call}: the first argument is a {type(found).__name__}; pass what find() has returned")
    return found


def _buffers_for(found: Found, destinations: Any) -> _exchange_core.Buffers:
    _found("pull", found)
    if isinstance(destinations, _exchange_core.Buffers):
        buffers = destinations
    else:
        several = isinstance(destinations, (list, tuple))
        given = destinations if several else [destinations]
        buffers = _exchange_core.Buffers.of_objects([_bits("pull", one) for one in given], True)
    if buffers.count != len(found):
        raise ValueError(f"pull: there are {len(found)} blocks, but {buffers.count} destinations")
    other = found._made.first_of_other_size(buffers)
    if other >= 0:
        raise WrongSize(
            errno.EMSGSIZE,
            f"pull: block {other} has {int(found.sizes[other])} bytes, but its destination {int(buffers.sizes[other])}",
        )
    return buffers


def _nanoseconds(seconds: float | None) -> int:
    if seconds is None:
        return _FOREVER
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"a time is {seconds} s; use None to wait without a limit")
    return min(int(seconds * 1e9), _FOREVER)


def _milliseconds(name: str, seconds: float) -> int:
    if not 0 <= seconds <= 60:
        raise ValueError(f"{name} is {seconds} s; the most are 60")
    return math.ceil(seconds * 1000)

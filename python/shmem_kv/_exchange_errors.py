# SPDX-License-Identifier: Apache-2.0
"""The exceptions of exchanges: a class for each cause."""

from __future__ import annotations

import errno
import os

import numpy as np
from numpy.typing import NDArray


class ExchangeError(OSError):
    """A call of an exchange has failed. Its subclasses say why; ``errno`` has the number."""

    statuses: NDArray[np.int32] | None = None
    """Of a call for several blocks: 0, or a negative errno, for each of them."""


class BlockNotFound(ExchangeError):
    """No other member has the key; or there is no such region, seat or published key."""


class LayoutMismatch(ExchangeError):
    """The key exists only with another layout."""


class OverQuota(ExchangeError):
    """This reader has as many leases of the owner as the owner's quota says."""


class TooManyTransfers(ExchangeError):
    """As many transfers wait or run as the member's quota says."""


class StaleBlock(ExchangeError):
    """The block was withdrawn after it was found: its epoch is another one."""


class OwnerDied(ExchangeError, ConnectionError):
    """The owner of the block has ended or left the exchange."""


class OwnerSilent(ExchangeError, TimeoutError):
    """The owner of the block, on another node, does not answer."""


class CorruptDirectory(ExchangeError):
    """The owner's directory makes no sense at this block."""


class UnreadableMemory(ExchangeError):
    """The owner's memory cannot be read."""


class BlockLeased(ExchangeError):
    """Readers still lease a withdrawn block: its memory must not change yet. Withdraw it again."""


class KeyInUse(ExchangeError):
    """This member has published the key already."""


class NoRoom(ExchangeError):
    """The directory, the table of regions, or a store has no room."""


class ExchangeFull(ExchangeError):
    """The exchange has as many members as it may have."""


class Canceled(ExchangeError):
    """The exchange was closed before the transfer began."""


class UnsupportedMemory(ExchangeError):
    """Memory of this kind, or of this size, cannot be registered."""


class WrongSize(ExchangeError, ValueError):
    """A destination is not as large as its block."""


_CLASSES: dict[int, type[ExchangeError]] = {
    errno.ENOENT: BlockNotFound,
    errno.EPROTOTYPE: LayoutMismatch,
    errno.EDQUOT: OverQuota,
    errno.EAGAIN: TooManyTransfers,
    errno.ESTALE: StaleBlock,
    errno.EOWNERDEAD: OwnerDied,
    errno.ETIMEDOUT: OwnerSilent,
    errno.EBADMSG: CorruptDirectory,
    errno.EIO: UnreadableMemory,
    errno.EBUSY: BlockLeased,
    errno.EEXIST: KeyInUse,
    errno.ENOSPC: NoRoom,
    errno.EUSERS: ExchangeFull,
    errno.ECANCELED: Canceled,
    errno.EOPNOTSUPP: UnsupportedMemory,
    errno.EFBIG: UnsupportedMemory,
    errno.EMSGSIZE: WrongSize,
}


_REASONS = {
    errno.ENOENT: "no other member has the key",
    errno.EPROTOTYPE: "the key exists only with another layout",
    errno.EDQUOT: "this reader has as many leases of the owner as the quota says",
    errno.ESTALE: "the block was withdrawn after it was found",
    errno.EOWNERDEAD: "its owner has ended",
    errno.ETIMEDOUT: "its owner, on another node, does not answer",
    errno.EBADMSG: "its owner's directory makes no sense there",
    errno.EIO: "its owner's memory cannot be read",
    errno.EINVAL: "the block was not found, or the key has no byte or more than 128",
    errno.EBUSY: "the key is being withdrawn, and readers still lease its block",
    errno.EEXIST: "this member has published the key already",
    errno.ENOSPC: "this member has published as many blocks as it may",
}


def error_of(number: int, text: str) -> Exception:
    """The exception of an errno."""
    if number == errno.EINVAL:
        return ValueError(text)
    if number == errno.ENOMEM:
        return MemoryError(text)
    return _CLASSES.get(number, ExchangeError)(number, text)


def raise_first(call: str, statuses: NDArray[np.int32]) -> None:
    """Raises for the first status that is not 0."""
    if not statuses.any():
        return
    failed = np.flatnonzero(statuses)
    first = int(failed[0])
    number = -int(statuses[first])
    kind = _CLASSES.get(number, ExchangeError)
    why = _REASONS.get(number, os.strerror(number))
    blocks = "1 block" if statuses.size == 1 else f"{statuses.size} blocks"
    text = f"{call}: {failed.size} of {blocks} failed; the first is number {first}: {why}"
    error = kind(number, text)
    error.statuses = statuses
    raise error

# SPDX-License-Identifier: Apache-2.0
"""What the adapters share."""

from __future__ import annotations

import errno
import hashlib
import logging
import re
from typing import Any

from .._exchange import Exchange
from .._exchange_errors import ExchangeError
from .._store import Store

logger = logging.getLogger("shmem_kv.adapters")

_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
# A directory entry for each 16 KiB of a store, of which each takes less than 300 bytes.
_BYTES_OF_BLOCK = 16384
_MOST_BLOCKS = 1 << 24
HOLDER_SECONDS = 0.1  # that a thread waits for a holder which does not answer; loads may wait for the thread
# Arguments of Exchange.connect(), without the secret: other users see command lines.
_NETWORK_OPTIONS = ("listen", "members", "answer_time")


def bytes_of(what: str, size: int | str) -> int:
    """A size in bytes, such as 1073741824 or "1G"."""
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)(?:i?b)?", str(size).strip().lower())
    if match is None or int(match[1]) == 0:
        raise ValueError(f"{what} is {size!r}; a size is a number of bytes, or a number with K, M, G or T")
    return int(match[1]) << _UNITS[match[2]]


def open_store(exchange: str, store_bytes: int | str, options: dict[str, Any]) -> Store:
    """Joins an exchange, also with members on other nodes if ``options`` say so, and makes the store of an adapter.

    ``options``: ``holder``, the name of an exchange whose holder has the blocks, and ``tenant``, of :class:`Store`; those of
    :class:`Exchange`; ``listen``, ``members`` and ``answer_time`` of :meth:`Exchange.connect`."""
    holder = options.pop("holder", None)
    tenant = options.pop("tenant", "")
    if holder is not None and exchange not in ("", holder):
        raise ValueError(f'"exchange" is {exchange!r} and "holder" is {holder!r}: a holder is that of its exchange, name one')
    exchange = exchange or holder or ""
    if not exchange or not isinstance(exchange, str):
        raise ValueError('"exchange" is missing: the name of the exchange that the engines share; or "holder"')
    if tenant and holder is None:
        raise ValueError('"tenant" is of a holder, and there is no "holder"')
    nbytes = bytes_of("store_bytes", store_bytes)
    network = {name: options.pop(name) for name in _NETWORK_OPTIONS if name in options}
    options.setdefault("blocks", 1 if holder else min(max(nbytes // _BYTES_OF_BLOCK, 65536), _MOST_BLOCKS))
    member = _join(exchange, options)
    try:
        if holder:
            store = Store(member, holder=holder, tenant=tenant, answer_time=HOLDER_SECONDS)
        else:
            store = Store(member, nbytes)
        if network:
            _connect(member, **network)
    except BaseException:
        member.close()
        raise
    logger.info("%s: joined, %s", member, "for its holder" if holder else f"with room for {nbytes} bytes")
    return store


def _join(exchange: str, options: dict[str, Any]) -> Exchange:
    """Joins. Of several engines or ranks with the same options on a node, one has its metrics at the port, and the others
    have theirs at any."""
    metrics = options.get("metrics")
    try:
        member = Exchange(exchange, **options)
    except ExchangeError as error:
        if error.errno != errno.EADDRINUSE or metrics is None:
            raise
        address, colon, _ = str(metrics).rpartition(":")
        member = Exchange(exchange, **(options | {"metrics": f"{address}{colon}0"}))
    if metrics is not None:
        logger.info("%s: its metrics are at port %d", member, member.stats().metrics_port)
    return member


def _connect(member: Exchange, listen: str | None = None, **network: Any) -> None:
    """Connects with other nodes. Of several engines or ranks with the same options on a node, one listens at the port, and
    the others, which the members that they find tell of, at any."""
    try:
        member.connect(listen=listen, **network)
    except ExchangeError as error:
        if error.errno != errno.EADDRINUSE or listen is None or listen.endswith(":0"):
            raise
        member.connect(listen=listen.rpartition(":")[0] + ":0", **network)
    logger.info("%s: listens at %s for members on other nodes", member, member.address)


def name_of(*parts: bytes | str | int) -> bytes:
    """The key of a block in the exchange, of 32 bytes: engines' keys may be longer than those of an exchange."""
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(4, "little"))
        digest.update(data)
    return digest.digest()

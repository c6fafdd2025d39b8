# SPDX-License-Identifier: Apache-2.0
"""A storage backend of SGLang's HiCache, loaded as ``dynamic`` with ``"interface_v1": 1``.

``--hicache-storage-backend dynamic --hicache-storage-backend-extra-config '{"backend_name": "shmem", "interface_v1": 1,
"module_path": "shmem_kv.adapters.sglang", "class_name": "ShmemHiCache", "exchange": "NAME", "store_bytes": "8G"}'``

Pages are copied directly between the host pool and the exchange, each range of memory of a page (K and V, for instance)
as a block of its own. A page is there if all of its ranges are.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _exchange_core
from .._store import layout_of
from ._common import logger, name_of, open_store

try:
    from sglang.srt.mem_cache.hicache_storage import HiCacheStorage, PoolTransferResult
except ImportError as _error:
    _MISSING: ImportError | None = _error
    HiCacheStorage = object
else:
    _MISSING = None
try:
    from sglang.srt.observability.metrics_collector import StorageMetrics
except ImportError:  # nor is there an engine that asks for them
    StorageMetrics = None

_Call = TypeVar("_Call", bound=Callable[..., Any])
_KV = "kv"
_FLAT = "flat"  # pages of get() and set(), which are tensors of their own
_TAG = "extra_backend_tag"  # SGLang's word for what keeps tenants of one storage apart
_OWN_KEYS = {"backend_name", "module_path", "class_name", "interface_v1", "exchange", "store_bytes", "namespace", _TAG}
_OPTIONS = {
    "answer_time",
    "blocks",
    "directory",
    "holder",
    "join_time",
    "lease_time",
    "leases",
    "listen",
    "members",
    "metrics",
    "tenant",
    "transfers",
}
_MOST_SAMPLES = 4096


def _or_else(default: Callable[..., Any]) -> Callable[[_Call], _Call]:
    """Logs what a call raises, and returns ``default(its arguments)``: SGLang's threads end by an exception, and are not
    started again."""

    def decorate(call: _Call) -> _Call:
        @functools.wraps(call)
        def guarded(self: Any, *arguments: Any, **named: Any) -> Any:
            try:
                return call(self, *arguments, **named)
            except Exception:
                logger.exception("%s has failed", call.__name__)
                return default(*arguments, **named)

        return guarded  # type: ignore[return-value]

    return decorate


class _Pool:
    """A host pool, and the layout of its pages. One that has no memory of its own, but names pages of other pools (that
    of DeepSeek-V4), has pages of no ranges, which are always there."""

    def __init__(self, name: str, pool: Any, rank: object) -> None:
        self.name = name
        self.pool = pool
        self.page_size: int = getattr(pool, "page_size", 1) or 1
        addresses, sizes = pool.get_page_buffer_meta(_indices(self.page_size)) or ((), ())
        self.ranges = len(addresses)
        """Of a page."""
        attributes = ("layout", "dtype", "layer_num", "head_num", "head_dim", "kv_cache_dim")
        geometry = {one: str(getattr(pool, one, None)) for one in attributes}
        sizes = tuple(_sizes_of(sizes, self.ranges))
        self.layout = layout_of(engine="sglang", rank=rank, pool=name, page=self.page_size, sizes=sizes, **geometry)

    def names(self, keys: Sequence[str], suffix: str) -> list[bytes]:
        """Of the ranges of pages."""
        return [name_of(key, suffix, self.name, i) for key in keys for i in range(self.ranges)]

    def buffers(self, keys: Sequence[str], host_indices: Any) -> _exchange_core.Buffers:
        """The memory of pages. Raises ValueError if the indices are not those of as many pages. A pool beside that of KV
        may have pages of another size, and takes the indices of KV's."""
        count = 0 if host_indices is None else len(host_indices)
        whole = count == len(keys) * self.page_size if self.name == _KV else count > 0 and count % len(keys) == 0
        if not whole:
            raise ValueError(f"{count} indices of {len(keys)} pages of {self.page_size} in the pool {self.name}")
        addresses, sizes = self.pool.get_page_buffer_meta(host_indices)
        if len(addresses) != len(keys) * self.ranges:
            raise ValueError(f"{len(addresses)} ranges of {len(keys)} pages of {self.ranges} in the pool {self.name}")
        sizes = _sizes_of(sizes, len(addresses))
        return _exchange_core.Buffers.of_ranges(np.array(addresses, np.uint64), np.array(sizes, np.uint64))


class _Samples:
    """Pages and GB/s of calls, until SGLang takes them. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: dict[str, list[tuple[int, float]]] = {"prefetch": [], "backup": []}

    def note(self, kind: str, pages: int, nbytes: int, begin: float) -> None:
        """A call that began at a time of the monotonic clock. The oldest samples go when there are too many."""
        seconds = max(time.monotonic() - begin, 1e-9)
        with self._lock:
            samples = self._taken[kind]
            samples.append((pages, nbytes / (1 << 30) / seconds))
            del samples[:-_MOST_SAMPLES]

    def take(self) -> Any:
        """The samples since the last call, as SGLang has them."""
        with self._lock:
            taken, self._taken = self._taken, {"prefetch": [], "backup": []}
        metrics = StorageMetrics()
        for kind, samples in taken.items():
            getattr(metrics, kind + "_pgs").extend(pages for pages, _ in samples)
            getattr(metrics, kind + "_bandwidth").extend(speed for _, speed in samples)
        return metrics


class ShmemHiCache(HiCacheStorage):
    """Stores pages in this process, and reads those of all members of the exchange.

    Keys of ``extra_config``: ``exchange``, its name; ``store_bytes``, the memory of this rank's store; or instead of both
    ``holder``, the exchange whose holder has the pages, and ``tenant``; ``namespace``, further words of what engines must agree about; the options of :class:`shmem_kv.Exchange`; and for members on other
    nodes ``listen``, ``members`` and ``answer_time`` of :meth:`shmem_kv.Exchange.connect`.
    """

    def __init__(self, storage_config: Any, kwargs: dict[str, Any] | None = None) -> None:
        if _MISSING is not None:
            raise ImportError(f"ShmemHiCache needs SGLang: {_MISSING}") from _MISSING
        extra = dict(storage_config.extra_config or {})
        unknown = sorted(set(extra) - _OWN_KEYS - _OPTIONS)
        if unknown:  # SGLang has keys of its own for all backends
            logger.info("ShmemHiCache leaves to SGLang: %s", ", ".join(unknown))
        self._v1 = bool(extra.get("interface_v1"))
        self._rank = _rank_of(storage_config, extra.get("namespace", ""), str(extra.get(_TAG) or ""))
        self._suffix = repr(self._rank)
        # All ranks of a model with a latent cache have the same pages: the first one stores them.
        self._stores = not (storage_config.is_mla_model and storage_config.tp_rank != 0)
        self._pools: dict[str, _Pool] = {}
        measures = StorageMetrics is not None and getattr(storage_config, "enable_storage_metrics", False)
        self._samples = _Samples() if measures else None
        options = {one: extra[one] for one in _OPTIONS & set(extra)}
        self._store = open_store(extra.get("exchange", ""), extra.get("store_bytes", "1G"), options)
        self._flat_layout = layout_of(engine="sglang", rank=self._rank, pool=_FLAT)

    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        """Called once the pool is there; until then there are no pages."""
        super().register_mem_pool_host(mem_pool_host)
        self._pools[_KV] = _Pool(_KV, mem_pool_host, self._rank)

    def register_mem_host_pool_v2(self, host_pool: Any, host_pool_name: Any) -> None:
        """A further pool, such as that of a draft model or of states."""
        super().register_mem_host_pool_v2(host_pool, host_pool_name)
        self._pools[str(host_pool_name)] = _Pool(str(host_pool_name), host_pool, self._rank)

    # ---- Pages of the pools ----

    @_or_else(lambda keys, *_, **__: [False] * len(keys))
    def batch_get_v1(self, keys: list[str], host_indices: Any, extra_info: Any = None) -> list[bool]:
        """Reads pages. The first False ends the prefix."""
        return self._get(self._pools[_KV], keys, host_indices)

    @_or_else(lambda keys, *_, **__: [False] * len(keys))
    def batch_set_v1(self, keys: list[str], host_indices: Any, extra_info: Any = None) -> list[bool]:
        """Stores pages."""
        return self._set(self._pools[_KV], keys, host_indices)

    @_or_else(lambda *_, **__: 0)
    def batch_exists(self, keys: list[str], extra_info: Any = None) -> int:
        """The length of the leading run of keys that exist."""
        there = self._there(_KV, keys) if self._v1 else self._flat_there(keys)
        return _run(there)

    @_or_else(lambda *_, **__: PoolTransferResult(0, {}))
    def batch_exists_v2(self, keys: list[str], pool_transfers: Any = None, extra_info: Any = None) -> Any:
        """The prefix that all pools have, and the prefix that each one has.

        A pool of the policy "trailing_pages" needs only the last pages of a prefix, as many as its transfer has keys.
        """
        prefix = usable = _run(self._there(_KV, keys))
        hits = {_KV: prefix} if prefix else {}
        for transfer in pool_transfers or []:
            there = self._there(str(transfer.name), keys[:prefix])
            if _policy(transfer) == "all_pages":
                count = _run(there)
            else:
                count = _longest_with_tail(there, max(1, len(transfer.keys or ())))
            if count:
                hits[transfer.name] = count
            usable = min(usable, count)
        return PoolTransferResult(usable, hits)

    @_or_else(lambda transfers, *_, **__: {one.name: [False] * len(one.keys or ()) for one in transfers})
    def batch_get_v2(self, transfers: Any, extra_info: Any = None) -> dict[Any, list[bool]]:
        """Reads pages of several pools."""
        return {one.name: self._of_pool(self._get, one) for one in transfers}

    @_or_else(lambda transfers, *_, **__: {one.name: [False] * len(one.keys or ()) for one in transfers})
    def batch_set_v2(self, transfers: Any, extra_info: Any = None) -> dict[Any, list[bool]]:
        """Stores pages of several pools."""
        return {one.name: self._of_pool(self._set, one) for one in transfers}

    # ---- Pages as tensors, without interface_v1 ----

    @_or_else(lambda *_, **__: None)
    def get(self, key: str, target_location: Any = None, target_sizes: Any = None) -> Any:
        """Reads a page into a contiguous tensor and returns it, or None."""
        if target_location is None:
            return None
        return target_location if self._store.get(self._flat(key), target_location, self._flat_layout)[0] == 0 else None

    @_or_else(lambda keys, *_, **__: [None] * len(keys))
    def batch_get(self, keys: list[str], target_locations: Any = None, target_sizes: Any = None) -> list[Any]:
        """get() of each key."""
        begin = time.monotonic()
        pages = [self.get(key, to) for key, to in zip(keys, target_locations or [None] * len(keys))]
        loaded = [_bytes_of(page) for page in pages if page is not None]
        self._note("prefetch", len(loaded), sum(loaded), begin)
        return pages

    @_or_else(lambda *_, **__: False)
    def set(self, key: str, value: Any = None, target_location: Any = None, target_sizes: Any = None) -> bool:
        """Stores a tensor."""
        if not self._stores:
            return True
        return bool(self._store.put(self._flat(key), value.contiguous(), self._flat_layout)[0] == 0)

    @_or_else(lambda *_, **__: False)
    def batch_set(
        self, keys: list[str], values: Any = None, target_locations: Any = None, target_sizes: Any = None
    ) -> bool:
        """set() of each key; the first failure ends it."""
        begin = time.monotonic()
        stored: list[int] = []
        for key, value in zip(keys, values, strict=True):
            if not self.set(key, value):
                break
            stored.append(_bytes_of(value))
        if self._stores:
            self._note("backup", len(stored), sum(stored), begin)
        return len(stored) == len(keys)

    def exists(self, key: str) -> bool:
        """Whether a page is there."""
        return self.batch_exists([key]) == 1

    # ---- Statistics, and the end ----

    @_or_else(lambda *_, **__: None)
    def get_stats(self) -> Any:
        """Pages and speeds of the calls since the last one; None if SGLang collects none."""
        return None if self._samples is None else self._samples.take()

    @_or_else(lambda *_, **__: None)
    def clear(self) -> None:
        """Evicts what this rank has stored."""
        self._store.clear()

    def close(self) -> None:
        """Leaves the exchange: SGLang detaches the backend."""
        self._store.exchange.close()

    def _of_pool(self, call: Callable[[_Pool, list[str], Any], list[bool]], transfer: Any) -> list[bool]:
        keys = list(transfer.keys or ())
        try:
            return call(self._pools[str(transfer.name)], keys, transfer.host_indices)
        except (KeyError, ValueError):
            logger.exception("pages of the pool %s", transfer.name)
            return [False] * len(keys)

    def _get(self, pool: _Pool, keys: list[str], host_indices: Any) -> list[bool]:
        if pool.ranges == 0 or not keys:
            return [True] * len(keys)
        begin = time.monotonic()
        buffers = pool.buffers(keys, host_indices)
        loaded = self._store.get(pool.names(keys, self._suffix), buffers, pool.layout) == 0
        whole = self._whole(pool, loaded)
        self._note("prefetch", sum(whole), buffers.sizes[loaded].sum(), begin)
        return whole

    def _set(self, pool: _Pool, keys: list[str], host_indices: Any) -> list[bool]:
        if not self._stores or pool.ranges == 0 or not keys:
            return [True] * len(keys)
        begin = time.monotonic()
        buffers = pool.buffers(keys, host_indices)
        names = pool.names(keys, self._suffix)
        stored = self._store.put(names, buffers, pool.layout) == 0
        whole = self._whole(pool, stored)
        self._note("backup", sum(whole), buffers.sizes[stored].sum(), begin)
        # K without V is of no use.
        self._store.discard([names[i] for i in np.flatnonzero(stored) if not whole[i // pool.ranges]])
        return whole

    def _note(self, kind: str, pages: int, nbytes: int, begin: float) -> None:
        if self._samples is not None and pages > 0:
            self._samples.note(kind, pages, int(nbytes), begin)

    def _whole(self, pool: _Pool, ranges: NDArray[np.bool_]) -> list[bool]:
        return [bool(one) for one in ranges.reshape(-1, pool.ranges).all(axis=1)]

    def _there(self, name: str, keys: list[str]) -> list[bool]:
        pool = self._pools.get(name)
        if pool is None or not keys:
            return [False] * len(keys)
        if pool.ranges == 0:
            return [True] * len(keys)
        return self._whole(pool, self._store.contains(pool.names(keys, self._suffix), pool.layout))

    def _flat(self, key: str) -> bytes:
        return name_of(key, self._suffix, _FLAT)

    def _flat_there(self, keys: list[str]) -> list[bool]:
        return [bool(one) for one in self._store.contains([self._flat(key) for key in keys], self._flat_layout)]


def _rank_of(config: Any, namespace: str, tag: str) -> tuple[object, ...]:
    """What SGLang's keys do not say. Ranks of a latent cache share pages."""
    tensor = () if config.is_mla_model else (config.tp_rank, config.tp_size)
    further = [getattr(config, one, None) for one in ("pp_rank", "pp_size", "attn_cp_rank", "attn_cp_size", "tp_lcm_size")]
    return (namespace, tag, config.model_name, tensor, *further, bool(getattr(config, "should_split_heads", False)))


def _indices(count: int) -> Any:
    import torch  # SGLang has it

    return torch.arange(count)


def _bytes_of(tensor: Any) -> int:
    return int(tensor.numel()) * int(tensor.element_size())


def _sizes_of(sizes: Any, count: int) -> list[int]:
    """A size for each range: some pools return one number for all."""
    return [int(one) for one in sizes] if hasattr(sizes, "__len__") else [int(sizes)] * count


def _policy(transfer: Any) -> str:
    return str(getattr(transfer.hit_policy, "value", transfer.hit_policy))


def _run(there: list[bool]) -> int:
    """The length of the leading run of True."""
    return there.index(False) if False in there else len(there)


def _longest_with_tail(there: list[bool], tail: int) -> int:
    """The longest prefix whose last pages, `tail` or all of them, are there."""
    for count in range(len(there), 0, -1):
        if all(there[max(0, count - tail) : count]):
            return count
    return 0

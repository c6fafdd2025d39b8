# SPDX-License-Identifier: Apache-2.0
"""Engines with our adapters in replicas of their interfaces, for tests; as a program, one in a process of its own:
engines.py KIND own|read|leave EXCHANGE.

Chunks have numbers up to 2 * COUNT, and all bytes of a chunk are its number plus one. A store has room for COUNT chunks.
With TESTS_WITH_HOLDER=1 the engine has none, but the holder of the exchange, and a tenant for its kind.
own: stores chunks, evicts them and stores them again, until it is killed. read: loads all chunks again and again, and
ends if one has wrong bytes. leave: stores chunks once, and ends without closing anything. Each ends with its standard
input, and prints "ready" once it has begun."""

import ctypes
import os
import pathlib
import sys
import threading
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).parent / "replicas"))

from members import WITH_HOLDER

COUNT = 16
ALL = range(2 * COUNT)
SIZE = 16 * 4096  # K and V of whole pages of memory, as the store has them


class Vllm:
    def __init__(self, exchange, **options):
        from vllm.v1.kv_offload.base import LookupResult, make_offload_key
        from vllm.v1.kv_offload.tiering.manager import TieringOffloadingManager

        tier = {"type": "ShmemTier", "module_path": "shmem_kv.adapters.vllm", "exchange": exchange}
        tier |= {"store_bytes": COUNT * SIZE, "namespace": "a test", "store_wait": 0, **options}
        config = types.SimpleNamespace(enable_kv_cache_events=True)
        self._engine = TieringOffloadingManager(config, tier, len(ALL), SIZE)
        self._keys = [make_offload_key(number.to_bytes(32, "little"), 0) for number in ALL]
        self._results = LookupResult

    def store(self, numbers):
        for number in numbers:
            self._engine.rows[number] = number + 1
        return self._engine.run(self._engine.store([self._keys[i] for i in numbers], list(numbers))).success

    def is_there(self, number):
        while (result := self._engine.lookup(self._keys[number])) == self._results.RETRY:
            self._engine.step()
        return result == self._results.HIT

    def load(self, numbers):
        keys = [self._keys[i] for i in numbers]
        result = self._engine.run(self._engine.load(keys, list(numbers)))
        loaded = keys if result.success else result.successful_keys
        return [self._engine.rows[i].tobytes() if self._keys[i] in loaded else None for i in numbers]

    def clear(self):
        self._engine.tier._store.clear()

    def close(self):
        self._engine.shutdown()


class Sglang:
    PAGE = 4

    def __init__(self, exchange, **options):
        import torch
        from sglang.srt.managers.cache_controller import HiCacheController, indices_of
        from sglang.srt.mem_cache.hicache_storage import HiCacheStorageConfig
        from sglang.srt.mem_cache.memory_pool_host import HostKVCache

        torch.set_num_threads(1)  # its threads spin
        self._pool = HostKVCache(len(ALL) * self.PAGE, self.PAGE, dtype=torch.uint8, layers=2, heads=2, dim=SIZE // 32)
        extra = {"backend_name": "shmem", "module_path": "shmem_kv.adapters.sglang", "class_name": "ShmemHiCache"}
        extra |= {"interface_v1": 1, "exchange": exchange, "store_bytes": COUNT * self._bytes_of_a_page(), **options}
        config = HiCacheStorageConfig(0, 1, 0, 1, 0, 1, False, False, True, "model", extra_config=extra)
        self._engine = HiCacheController(self._pool, config)
        self._keys = [self._engine.keys_of([number] * self.PAGE)[0] for number in ALL]
        self._indices_of = indices_of

    def _bytes_of_a_page(self):
        return sum(part.numel() for part in self._pool.ranges(0))

    def _places(self, number):
        return self._indices_of([number], self.PAGE)

    def store(self, numbers):
        for number in numbers:
            for part in self._pool.ranges(number * self.PAGE):
                part.fill_(number + 1)
        keys = [self._keys[i] for i in numbers]
        return self._engine.backup(keys, self._indices_of(numbers, self.PAGE)) == len(keys)

    def is_there(self, number):
        return self._engine.prefetch_hits([self._keys[number]]) == 1

    def load(self, numbers):
        return [self._bytes_of(i) if self._engine.prefetch([self._keys[i]], self._places(i)) else None for i in numbers]

    def _bytes_of(self, number):
        return b"".join(part.contiguous().numpy().tobytes() for part in self._pool.ranges(number * self.PAGE))

    def clear(self):
        self._engine.backend.clear()

    def close(self):
        self._engine.detach()
        assert self._engine.dead == []


class Lmcache:
    def __init__(self, exchange, **options):
        from lmcache.v1.distributed.l2_adapters.native_connector_l2_adapter import object_key_to_string
        from lmcache.v1.distributed.l2_adapters.plugin_l2_adapter import create_plugin_adapter

        config = {"type": "plugin", "module_path": "shmem_kv.adapters.lmcache", "class_name": "ShmemL2Adapter"}
        parameters = {"exchange": exchange, "store_bytes": COUNT * SIZE, "store_wait": 0, **options}
        self._adapter = create_plugin_adapter(config | {"adapter_params": parameters})
        self._keys = [object_key_to_string("model", 1, 0, number.to_bytes(32, "big"), "") for number in ALL]

    def _wait(self, what, task):
        return self._adapter.wait(what, task)

    def store(self, numbers):
        objects = [memoryview((ctypes.c_ubyte * SIZE)(*[i + 1] * SIZE)) for i in numbers]
        task = self._adapter.submit_store_task([self._keys[i] for i in numbers], objects)
        return self._wait("store", task).is_successful()

    def is_there(self, number):
        keys = [self._keys[number]]
        there = self._wait("lookup", self._adapter.submit_lookup_and_lock_task(keys, {}))[0]
        self._adapter.submit_unlock(keys)
        return there

    def load(self, numbers):
        objects = [memoryview((ctypes.c_ubyte * SIZE)()) for _ in numbers]
        loaded = self._wait("load", self._adapter.submit_load_task([self._keys[i] for i in numbers], objects))
        return [bytes(one) if there else None for one, there in zip(objects, loaded)]

    def clear(self):
        self._adapter.client._store.clear()

    def close(self):
        self._adapter.close()


KINDS = {"vllm": Vllm, "sglang": Sglang, "lmcache": Lmcache}


def is_right(number, content):
    """Of a chunk, or of one that could not be loaded."""
    return content is None or content == bytes([number + 1]) * len(content)


def end_with_the_test():
    sys.stdin.read()
    os._exit(1)


def main():
    kind, role, exchange = sys.argv[1:]
    threading.Thread(target=end_with_the_test, daemon=True).start()
    holder = {"holder": exchange, "tenant": kind} if WITH_HOLDER else {}
    engine = KINDS[kind](exchange, **holder)
    ready = False
    while True:
        if role in ("own", "leave"):
            engine.store(range(COUNT))
            time.sleep(0.005)
        elif not all(is_right(i, content) for i, content in zip(ALL, engine.load(ALL))):
            sys.exit(f"{kind}: wrong bytes")
        if not ready:
            print("ready", flush=True)
            ready = True
        if role == "leave":
            return
        if role == "own":
            engine.clear()


if __name__ == "__main__":
    main()

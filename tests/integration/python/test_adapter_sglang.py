# SPDX-License-Identifier: Apache-2.0
"""The storage backend for SGLang against a replica of its interface."""

import pathlib
import sys
import unittest

try:
    import torch
except ImportError as error:
    print(f"skipped: {error} (Debian: python3-torch)")
    sys.exit(77)

torch.set_num_threads(1)  # its threads spin, and take the processors from those of the test
sys.path.insert(0, str(pathlib.Path(__file__).parent / "replicas"))

from members import LEAST_HELD, WITH_HOLDER, ExchangeTest
from shmem_kv.adapters.sglang import ShmemHiCache
from sglang.srt.managers.cache_controller import HiCacheController, indices_of
from sglang.srt.mem_cache.hicache_storage import (
    STORAGE_BATCH_SIZE,
    HiCacheStorageConfig,
    PoolHitPolicy,
    PoolName,
    PoolTransfer,
)
from sglang.srt.mem_cache.memory_pool_host import HostKVCache, LogicalHostPool

PAGE = 4


def filled(pool, seed):
    """The pool with random bits."""
    bits = pool.kv_buffer.view(torch.uint8)
    bits.copy_(torch.randint(0, 256, bits.shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)))
    return pool


def bytes_of(pool, page):
    return [bytes(part.contiguous().view(torch.uint8).flatten().numpy()) for part in pool.ranges(page * pool.page_size)]


class Backend(ExchangeTest):
    def pool(self, pages=8, seed=1, dtype=torch.bfloat16, **geometry):
        geometry = {"layers": 3, "heads": 2, "dim": 8} | geometry
        return filled(HostKVCache(pages * PAGE, PAGE, dtype=dtype, **geometry), seed)

    def config(self, model="org/model", tp=(0, 1), is_mla=False, v1=1, measures=False, **extra):
        extra = {
            "backend_name": "shmem",
            "module_path": "shmem_kv.adapters.sglang",
            "class_name": "ShmemHiCache",
            "interface_v1": v1,
            "prefetch_threshold": 1,  # SGLang's own
            **self.store_options(4 << 20),
        } | extra
        return HiCacheStorageConfig(*tp, 0, 1, 0, 1, is_mla, measures, True, model, extra_config=extra)

    def engine(self, pool=None, **config):
        engine = HiCacheController(pool or self.pool(), self.config(**config))
        self.addCleanup(self.end, engine)
        return engine

    def end(self, engine):
        engine.detach()
        self.assertEqual(engine.dead, [])

    def test_pages_go_from_node_to_node(self):
        with self.on_node("kiwi"):
            holder = self.hold_on_this_node(4 << 20)
            one = self.engine(listen="127.0.0.1:0")
        with self.on_node("lemon"):
            address = holder or one.backend._store.exchange.address
            two = self.engine(self.pool(seed=2), listen="127.0.0.1:0", members=address, answer_time=60)
        self.wait_for(lambda: any(member.seat >= 64 for member in two.backend._store.exchange.members()))
        keys = one.keys_of(list(range(6 * PAGE)))
        self.assertEqual(two.prefetch_hits(keys), 0)
        self.assertEqual(one.backup(keys[:5], indices_of(range(5), PAGE)), 5)
        self.assertEqual(two.prefetch_hits(keys), 5)
        self.assertEqual(two.prefetch(keys, indices_of(range(6), PAGE)), 5)
        self.assertEqual([bytes_of(two.pool, i) for i in range(5)], [bytes_of(one.pool, i) for i in range(5)])

    def test_pages_go_from_engine_to_engine_in_every_layout(self):
        geometries = [{}, {"layout": "layer_first"}, {"layout": "page_first_direct"}, {"layout": "page_head"}]
        geometries += [{"is_mla": True, "heads": 1}]
        geometries += [{"dtype": dtype} for dtype in (torch.uint8, torch.float16, torch.float32)]
        for geometry in geometries:
            for v1 in (1, 0):
                is_mla = geometry.get("is_mla", False)
                one = self.engine(self.pool(seed=1, **geometry), v1=v1, is_mla=is_mla)
                two = self.engine(self.pool(seed=2, **geometry), v1=v1, is_mla=is_mla)
                keys = one.keys_of(list(range(7 * PAGE + 2)))
                self.assertEqual((len(keys), two.prefetch_hits(keys)), (7, 0))
                self.assertEqual(one.backup(keys[:5], indices_of([0, 1, 2, 3, 4], PAGE)), 5)
                self.assertEqual((one.prefetch_hits(keys), two.prefetch_hits(keys)), (5, 5))
                before = bytes_of(two.pool, 0)
                self.assertEqual(two.prefetch(keys, indices_of([7, 6, 5, 4, 3, 2, 1], PAGE)), 5)
                for i in range(5):
                    self.assertEqual(bytes_of(two.pool, 7 - i), bytes_of(one.pool, i), f"{geometry} {v1}")
                self.assertEqual(bytes_of(two.pool, 0), before)
                one.backend.clear()
                self.assertEqual(two.prefetch_hits(keys), 0)

    def test_large_batches(self):
        count = 2 * STORAGE_BATCH_SIZE + 5
        one, two = self.engine(self.pool(count)), self.engine(self.pool(count, 2))
        keys = one.keys_of(list(range(count * PAGE)))
        indices = indices_of(range(count), PAGE)
        self.assertEqual(one.backup(keys, indices), count)
        self.assertEqual(two.prefetch_hits(keys), count)
        self.assertEqual(two.prefetch(keys, indices), count)
        self.assertTrue(torch.equal(one.pool.kv_buffer.view(torch.int16), two.pool.kv_buffer.view(torch.int16)))

    def test_the_first_page_that_is_missing_ends_the_prefix(self):
        one, two = self.engine(), self.engine()
        keys = one.keys_of(list(range(6 * PAGE)))
        one.backup([keys[i] for i in (0, 1, 3, 4)], indices_of([0, 1, 3, 4], PAGE))
        self.assertEqual(two.prefetch_hits(keys), 2)
        self.assertEqual(two.backend.batch_get_v1(keys, indices_of(range(6), PAGE)), [True, True, False, True, True, False])

    def test_k_without_v_is_no_page(self):
        part = LEAST_HELD // 4  # a range: K or V of a page
        pool = self.pool(layers=4, heads=4, dim=part // (4 * 4 * PAGE * 2))
        small = self.engine(pool, **self.store_options(5 * part), lease_time=60)  # two and a half pages
        backend, pool = small.backend, small.pool
        keys = small.keys_of(list(range(3 * PAGE)))
        self.assertEqual(small.backup(keys[:1], indices_of([0], PAGE)), 1)
        names = backend._pools["kv"].names(keys[:1], backend._suffix)
        reader = self.join()
        self.assertTrue(reader.find(names).hits().all())
        self.assertEqual(list(backend._store.discard(names[1])), [True])
        self.assertEqual(small.prefetch_hits(keys[:1]), 0)
        self.assertEqual(small.prefetch(keys[:1], indices_of([3], PAGE)), 0)
        # Room for one range only: nothing of the page stays.
        backend.clear()
        held = self.join()
        for i in range(2):
            self.assertEqual(small.backup([keys[i]], indices_of([i], PAGE)), 1)
        found = held.find(backend._pools["kv"].names(keys[:2], backend._suffix), lease=60)
        self.assertTrue(found.hits().all())
        stored = small.backup(keys[2:], indices_of([2], PAGE))
        self.assertEqual(small.prefetch_hits(keys[2:]), 0)
        if not WITH_HOLDER:  # which takes V, and evicts K for it
            self.assertEqual(stored, 0)
            self.assertFalse(reader.find(backend._pools["kv"].names(keys[2:], backend._suffix)).hits().any())
        held.release(found)
        self.assertEqual(pool.page_size, PAGE)

    def test_engines_that_differ_share_nothing(self):
        keys = self.engine().keys_of(list(range(PAGE)))
        self.engine().backup(keys, indices_of([0], PAGE))
        self.assertEqual(self.engine().prefetch_hits(keys), 1)
        for options in ({"model": "org/other"}, {"tp": (1, 2)}, {"tp": (0, 2)}, {"namespace": "seed 2"}):
            self.assertEqual(self.engine(**options).prefetch_hits(keys), 0, options)
        for geometry in ({"dtype": torch.float16}, {"layout": "layer_first"}, {"layers": 2}, {"heads": 8, "dim": 2}):
            self.assertEqual(self.engine(self.pool(**geometry)).prefetch_hits(keys), 0, geometry)

    def test_of_a_latent_cache_the_first_rank_stores_and_all_read(self):
        ranks = [self.engine(self.pool(seed=5, is_mla=True, heads=1), is_mla=True, tp=(rank, 2)) for rank in range(2)]
        keys = ranks[0].keys_of(list(range(PAGE)))
        self.assertEqual(ranks[1].backend.batch_set_v1(keys, indices_of([0], PAGE)), [True])
        self.assertEqual([rank.prefetch_hits(keys) for rank in ranks], [0, 0])
        ranks[0].backup(keys, indices_of([0], PAGE))
        self.assertEqual([rank.prefetch_hits(keys) for rank in ranks], [1, 1])
        self.assertEqual(ranks[1].prefetch(keys, indices_of([3], PAGE)), 1)

    def test_a_late_pool_and_bad_arguments_raise_nothing(self):
        from shmem_kv.adapters.sglang import ShmemHiCache

        backend = ShmemHiCache(self.config(), {})
        self.addCleanup(backend.close)
        keys = ["0" * 64, "1" * 64]
        with self.assertLogs("shmem_kv.adapters", "ERROR"):
            self.assertEqual(backend.batch_get_v1(keys, indices_of([0, 1], PAGE)), [False, False])
            self.assertEqual(backend.batch_set_v1(keys=keys, host_indices=indices_of([0, 1], PAGE)), [False, False])
        self.assertEqual((backend.batch_exists(keys), backend.exists(keys[0])), (0, False))
        backend.register_mem_pool_host(self.pool())
        with self.assertLogs("shmem_kv.adapters", "ERROR"):
            self.assertEqual(backend.batch_get_v1(keys, indices_of([0], PAGE)), [False, False])
            self.assertEqual(backend.batch_set_v1(keys, None), [False, False])
            self.assertFalse(backend.set("k", None))
            self.assertIsNone(backend.get("k", torch.zeros(4, 4).t()))
        self.assertEqual(backend.batch_set_v1(keys, indices_of([0, 1], PAGE)), [True, True])
        self.assertTrue(backend.set("k", torch.arange(12).reshape(3, 4).t()))  # not contiguous
        read = backend.get("k", torch.zeros(4, 3, dtype=torch.int64))
        self.assertTrue(torch.equal(read, torch.arange(12).reshape(3, 4).t()))
        self.assertIsNone(backend.get("k"))
        self.assertIsNone(backend.get("k", torch.zeros(5, dtype=torch.int64)))
        self.assertEqual(backend.batch_get(["none"], None), [None])
        backend.close()
        with self.assertLogs("shmem_kv.adapters", "ERROR"):
            self.assertEqual(backend.batch_get_v1(["2" * 64], indices_of([0], PAGE)), [False])
            self.assertEqual(backend.batch_exists(["2" * 64]), 0)

    def test_the_threads_overlap_and_the_backend_is_attached_again(self):
        one, two = self.engine(self.pool(64)), self.engine(self.pool(64, 2))
        keys = one.keys_of(list(range(64 * PAGE)))
        answers = []
        for i in range(64):
            answers.append(one.start("set", keys[i : i + 1], indices_of([i], PAGE)))
            answers.append(two.start("exists", keys[: i + 1], None))
            answers.append(two.start("get", keys[i // 2 : i // 2 + 1], indices_of([i // 2], PAGE)))
        self.assertNotIn(None, [answer.get(timeout=60) for answer in answers])
        self.assertEqual(two.prefetch(keys, indices_of(range(64), PAGE)), 64)
        self.assertEqual(bytes_of(two.pool, 63), bytes_of(one.pool, 63))
        one.detach()
        self.wait_for(lambda: two.prefetch_hits(keys) == (64 if WITH_HOLDER else 0))
        two.backend.clear()  # with a holder all
        self.assertEqual(two.prefetch_hits(keys), 0)
        one.attach(self.config())
        one.backup(keys[:1], indices_of([0], PAGE))
        self.wait_for(lambda: two.prefetch_hits(keys) == 1)

    def test_further_pools(self):
        one, two = self.engine(), self.engine(self.pool(seed=2))
        mamba = [self.pool(8, seed, torch.float32, layers=1, heads=5) for seed in (3, 4)]
        for engine, pool in zip((one, two), mamba):
            engine.backend.register_mem_host_pool_v2(engine.pool, PoolName.KV)
            engine.backend.register_mem_host_pool_v2(pool, PoolName.MAMBA)
        keys = one.keys_of(list(range(6 * PAGE)))

        def transfer(name, chosen, pages, policy=PoolHitPolicy.ALL_PAGES):
            return PoolTransfer(name, host_indices=indices_of(pages, PAGE), keys=chosen, hit_policy=policy)

        stored = one.backend.batch_set_v2(
            [transfer(PoolName.KV, keys[:5], range(5)), transfer(PoolName.MAMBA, keys[2:4], [2, 3])]
        )
        self.assertEqual(stored, {PoolName.KV: [True] * 5, PoolName.MAMBA: [True] * 2})

        def hits(policy, count):
            result = two.backend.batch_exists_v2(keys, [PoolTransfer(PoolName.MAMBA, keys=keys[:count], hit_policy=policy)])
            return result.kv_hit_pages, dict(result.extra_pool_hit_pages)

        self.assertEqual(hits(PoolHitPolicy.ALL_PAGES, 6), (0, {"kv": 5}))
        self.assertEqual(hits(PoolHitPolicy.TRAILING_PAGES, 2), (4, {"kv": 5, PoolName.MAMBA: 4}))
        self.assertEqual(hits(PoolHitPolicy.TRAILING_PAGES, 3), (0, {"kv": 5}))
        unknown = PoolTransfer(PoolName.SWA, keys=["x"])
        with self.assertLogs("shmem_kv.adapters", "ERROR"):
            loaded = two.backend.batch_get_v2(
                [transfer(PoolName.KV, keys, range(6)), transfer(PoolName.MAMBA, keys[3:5], [0, 1]), unknown]
            )
        self.assertEqual(
            loaded, {PoolName.KV: [True] * 5 + [False], PoolName.MAMBA: [True, False], PoolName.SWA: [False]}
        )
        self.assertEqual(bytes_of(mamba[1], 0), bytes_of(mamba[0], 3))
        self.assertEqual(two.backend.batch_exists_v2([], None).kv_hit_pages, 0)

    def test_a_primary_pool_without_memory(self):
        """Pages of DeepSeek-V4: the further pools take the indices of the first one, and have pages of another size."""

        class Sidecar(HostKVCache):
            def get_page_buffer_meta(self, indices):
                pages = indices[::PAGE] // PAGE if len(indices) % PAGE == 0 else indices
                return super().get_page_buffer_meta(pages)

        backends, pools = [], []
        for seed in (1, 2):
            backend = ShmemHiCache(self.config(), {})
            self.addCleanup(backend.close)
            pool = filled(Sidecar(8, 1, 3, 2, 8, torch.bfloat16), seed)
            backend.register_mem_pool_host(LogicalHostPool(8 * PAGE, PAGE))
            backend.register_mem_host_pool_v2(pool, PoolName.SWA)
            backends.append(backend)
            pools.append(pool)
        one, two = backends
        keys, indices = ["a", "b"], torch.arange(2 * PAGE)
        transfers = [PoolTransfer(PoolName.SWA, host_indices=indices, keys=keys)]
        self.assertEqual(one.batch_set_v1(keys, indices), [True, True])
        self.assertEqual(one.batch_set_v2(transfers), {PoolName.SWA: [True, True]})
        self.wait_for(lambda: len(two._store.exchange.members()) == 1 + WITH_HOLDER)
        self.assertEqual(two.batch_exists_v2(keys + ["c"], transfers).kv_hit_pages, 2)
        self.assertEqual(two.batch_get_v1(keys, indices), [True, True])
        self.assertEqual(two.batch_get_v2(transfers), {PoolName.SWA: [True, True]})
        self.assertTrue((pools[0].kv_buffer[:, :2] == pools[1].kv_buffer[:, :2]).all())

    def test_tenants_with_tags_of_their_own_share_nothing(self):
        one, same, other = (self.engine(extra_backend_tag=tag) for tag in ("one", "one", "other"))
        keys = one.keys_of(list(range(2 * PAGE)))
        self.assertEqual(one.backup(keys, indices_of(range(2), PAGE)), 2)
        self.assertEqual(same.prefetch_hits(keys), 2)
        self.assertEqual(other.prefetch_hits(keys), 0)

    def test_statistics(self):
        for v1 in (1, 0):
            one, two = self.engine(measures=True, v1=v1), self.engine(self.pool(seed=2), measures=True, v1=v1)
            keys = one.keys_of(list(range(v1, 6 * PAGE + v1)))
            self.assertEqual(one.backup(keys[:5], indices_of(range(5), PAGE)), 5)
            self.assertEqual(two.prefetch(keys, indices_of(range(6), PAGE)), 5)
            self.assertEqual(two.prefetch(keys[5:], indices_of([5], PAGE)), 0)  # of no page, so of no speed
            for engine in (one, two):
                engine.check_hicache_events()
                engine.check_hicache_events()  # handed over once
            found = [engine.collector.histograms for engine in (one, two)]
            self.assertEqual([(one.backup_pgs, one.prefetch_pgs) for one in found], [([5], []), ([], [5])])
            speeds = [len(one.backup_bandwidth) + len(one.prefetch_bandwidth) for one in found]
            self.assertEqual(speeds, [1, 1])
        without = self.engine()
        without.backup(keys[:1], indices_of([0], PAGE))
        self.assertIsNone(without.backend.get_stats())

    def test_statistics_that_nobody_takes_are_bounded(self):
        engine = self.engine(measures=True)
        keys = engine.keys_of(list(range(PAGE)))
        engine.backup(keys, indices_of([0], PAGE))
        for _ in range(5000):
            engine.backend.batch_get_v1(keys, indices_of([0], PAGE))
        self.assertEqual(len(engine.backend.get_stats().prefetch_pgs), 4096)

    def test_configuration(self):
        for missing in ("module_path", "class_name"):
            config = self.config()
            del config.extra_config[missing]
            with self.assertRaisesRegex(ValueError, missing):
                HiCacheController(self.pool(), config)
        with self.assertRaisesRegex(ValueError, '"exchange" is missing'):
            self.engine(exchange="", holder=None)


if __name__ == "__main__":
    unittest.main(verbosity=0)

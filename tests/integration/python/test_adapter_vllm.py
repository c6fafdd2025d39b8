# SPDX-License-Identifier: Apache-2.0
"""The tier for vLLM against a replica of its interface."""

import dataclasses
import errno
import os
import pathlib
import random
import signal
import sys
import time
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parent / "replicas"))

import engines
import numpy as np
from members import LIMIT, WITH_HOLDER, ExchangeTest, kill
from shmem_kv import _exchange_core
from shmem_kv.adapters import _common, vllm
from shmem_kv.adapters.vllm import _name_of_chunk as name_of
from slow_memory import SlowMemory
from vllm.v1.kv_offload.base import LookupResult, make_offload_key
from vllm.v1.kv_offload.config import (
    OffloadingCacheConfig,
    OffloadingConfig,
    OffloadingGroupConfig,
    OffloadingModelConfig,
    OffloadingParallelConfig,
)
from vllm.v1.kv_offload.tiering.manager import TieringOffloadingManager

ROW = 16 * 4096
SLOTS = 32
ROOM = 16  # chunks that a store has room for
TIER = {"type": "ShmemTier", "module_path": "shmem_kv.adapters.vllm", "store_wait": 0}
vllm._ANSWER_SECONDS = LIMIT  # a slow machine would ask again
METRIC = "vllm:kv_offload_shmem_"
HIT, MISS, RETRY = LookupResult.HIT, LookupResult.MISS, LookupResult.RETRY
# Two groups of different geometry: slots are sized for the larger one.
CONFIG = OffloadingConfig(
    groups=(OffloadingGroupConfig(16, ("layer.0", "layer.1"), 0), OffloadingGroupConfig(64, ("mamba.0",), 1)),
    worker_kv_bytes_per_block=ROW,
    enable_kv_cache_events=False,
    extra_config={},
    engine_id="engine",
    model=OffloadingModelConfig("model", "bfloat16"),
    cache=OffloadingCacheConfig(16, 1),
)
WITH_EVENTS = dataclasses.replace(CONFIG, enable_kv_cache_events=True)


def key_of(number, group=0, length=32):
    return make_offload_key(number.to_bytes(length, "little"), group)


class Tier(ExchangeTest):
    def engine(self, config=CONFIG, row=ROW, slots=SLOTS, old_jobs=False, **options):
        tier = TIER | self.store_options(ROOM * ROW) | options
        engine = TieringOffloadingManager(config, tier, slots, row, old_jobs)
        engine.rows[:] = np.random.default_rng(1).integers(-128, 128, (slots, row), np.int8)
        self.addCleanup(engine.shutdown)
        return engine

    def test_chunks_go_from_node_to_node(self):
        with self.on_node("kiwi"):
            address = self.hold_on_this_node(ROOM * ROW)
            one = self.engine(listen="127.0.0.1:0")
        with self.on_node("lemon"):
            members = [address or one.tier._store.exchange.address]
            two = self.engine(listen="127.0.0.1:0", members=members, answer_time=60)
        self.wait_for(lambda: any(member.seat >= 64 for member in two.tier._store.exchange.members()))
        keys = [key_of(i, i % 2) for i in range(4)]
        self.assertTrue(one.run(one.store(keys[:3], [0, 1, 2])).success)
        # A lookup waits for nobody: the answer of another node is there later.
        self.assertEqual({two.lookup(key) for key in keys}, {RETRY})
        self.wait_for(lambda: not two.call("has_pending_work"))
        self.assertEqual([two.lookup(key) for key in keys], [HIT, HIT, HIT, MISS])
        self.assertEqual([two.lookup(key) for key in keys[:3]], [HIT] * 3)  # the same as long as a request waits
        self.assertEqual(two.lookup(keys[3]), RETRY)  # asked again
        self.assertTrue(two.run(two.load(keys[:3], [5, 6, 7])).success)
        self.assertTrue((two.rows[5:8] == one.rows[:3]).all())
        # A chunk that has gone is no hit after its load has failed.
        one.tier._store.discard([name_of(keys[0])])
        two.tier._store.discard([name_of(keys[0])])
        self.assertFalse(two.run(two.load(keys[:1], [8])).success)
        self.assertEqual(two.lookup(keys[0]), RETRY)
        self.wait_for(lambda: two.lookup(keys[0]) == MISS)
        if WITH_HOLDER:  # which does not answer now
            self.holder.send_signal(signal.SIGSTOP)
            self.addCleanup(self.holder.send_signal, signal.SIGCONT)
            os.waitid(os.P_PID, self.holder.pid, os.WSTOPPED | os.WNOWAIT)
            begin = time.monotonic()
            two.call("touch", keys, None)
            self.assertEqual(two.lookup(key_of(9)), RETRY)
            self.assertLess(time.monotonic() - begin, LIMIT / 2)
            self.holder.send_signal(signal.SIGCONT)

    def test_chunks_go_from_engine_to_engine(self):
        for old_jobs in (False, True):
            one, two = self.engine(old_jobs=old_jobs), self.engine(old_jobs=not old_jobs)
            keys = [key_of(i, i % 2, 16 if i < 4 else 32) for i in range(8)]  # xxh3 and sha256, two groups
            self.assertEqual({one.lookup(key) for key in keys} | {two.lookup(key) for key in keys}, {MISS})
            self.assertTrue(one.run(one.store(keys, list(range(8)))).success)
            self.assertEqual({one.lookup(key) for key in keys} | {two.lookup(key) for key in keys}, {HIT})
            two.rows[:] = 0
            result = two.run(two.load(keys, list(range(20, 28))))
            self.assertEqual((result.success, result.successful_keys, result.transfer_bytes), (True, None, 8 * ROW))
            self.assertTrue((two.worker[20:28] == one.rows[:8]).all())  # seen by the second mapping
            self.assertFalse(two.rows[:20].any() or two.rows[28:].any())
            one.rows[8:16] = 0
            self.assertTrue(one.run(one.load(keys, list(range(8, 16)))).success)  # its own
            self.assertTrue((one.rows[8:16] == one.rows[:8]).all())
            # The same hash in another group is another chunk.
            self.assertEqual(two.lookup(key_of(0, 1, 16)), MISS)
            one.tier._store.clear()

    def test_a_load_that_fails_in_part_is_a_miss_afterwards(self):
        one, two = self.engine(), self.engine()
        keys = [key_of(i) for i in range(3)]
        one.run(one.store(keys, [0, 1, 2]))
        one.tier._store.discard(name_of(keys[1]))
        result = two.run(two.load(keys, [3, 4, 5]))
        self.assertEqual((result.success, list(result.successful_keys)), (False, [keys[0], keys[2]]))
        self.assertEqual([two.lookup(key) for key in keys], [HIT, MISS, HIT])
        self.assertTrue((two.rows[5] == one.rows[2]).all())

    def test_a_block_that_cannot_be_read_is_no_hit_again(self):
        one, two = self.engine(), self.engine()
        key = key_of(5)
        one.run(one.store([key], [0]))
        real = two.tier._store.exchange.try_pull
        two.tier._store.exchange.try_pull = lambda found, to: np.full(len(found), -errno.EIO, np.int32)
        self.assertEqual(two.lookup(key), HIT)
        self.assertFalse(two.run(two.load([key], [1])).success)
        self.assertEqual(two.lookup(key), MISS)  # else the engine would ask for ever
        two.tier._store.exchange.try_pull = real
        one.tier._store.discard(name_of(key))
        one.run(one.store([key], [0]))  # another epoch
        self.assertEqual(two.lookup(key), HIT)
        self.assertTrue(two.run(two.load([key], [1])).success)

    def test_no_call_waits_for_a_copy(self):
        engine = self.engine()
        memory = SlowMemory(engine.rows.nbytes)
        engine.tier._rows = memory.array.reshape(engine.rows.shape)
        with memory.unreadable():
            job = engine.store([key_of(1)], [0])
            self.assertTrue(memory.reached.wait(LIMIT))
            self.assertEqual(engine.lookup(key_of(1)), RETRY)
            self.assertEqual(engine.lookup(key_of(2)), MISS)
            second = engine.load([key_of(2)], [1])
            engine.step()
            self.assertTrue(engine.call("has_pending_work"))
            self.assertNotIn(job, engine.results)
        self.assertTrue(engine.run(job).success)
        self.assertFalse(engine.run(second).success)
        self.assertEqual(engine.lookup(key_of(1)), HIT)
        self.assertFalse(engine.call("has_pending_work"))

    def test_each_job_has_one_result_also_at_the_end(self):
        engine = self.engine()
        for i in range(40):
            engine.store([key_of(i)], [i % SLOTS])
            engine.load([key_of(i), key_of(i + 1000)], [(i + 1) % SLOTS, (i + 2) % SLOTS])  # fails
            engine.jobs[engine.next_job - 2] = (engine.jobs[engine.next_job - 2][0], None)  # its slot is overwritten
        engine.reset_cache()
        self.assertEqual(sorted(engine.results), list(range(80)))
        self.assertFalse(engine.run(engine.load([key_of(1)], [SLOTS])).success)  # no such slot
        engine.store([key_of(1)], [0])
        engine.shutdown()
        engine.store([key_of(2)], [0])  # after the end
        engine.step()
        self.assertEqual(engine.jobs, {})
        engine.file = os.memfd_create("closed again by the cleanup")

    def test_evicts_when_it_is_full(self):
        engine = self.engine()
        for i in range(40):
            self.assertTrue(engine.run(engine.store([key_of(i)], [i % SLOTS])).success)
            engine.call("touch", [key_of(0)], None)
        there = [i for i in range(40) if engine.lookup(key_of(i)) == HIT]
        if WITH_HOLDER:  # which looks at the use of blocks from time to time
            self.assertEqual((len(there), there[ROOM // 2 :]), (ROOM, list(range(40 - ROOM // 2, 40))))
        else:
            self.assertEqual(there, [0, *range(25, 40)])

    def test_events_make_an_index_of_the_store(self):
        engine, other = self.engine(WITH_EVENTS, threads=2), self.engine(WITH_EVENTS)
        keys = [key_of(i) for i in range(3 * ROOM)]

        def there():
            return {key for key in keys if engine.tier._store.holds(name_of(key))}

        def check_index():
            self.wait_for(lambda: engine.step() or engine.index == there())
            self.assertEqual(other.index, set())

        engine.run(engine.store(keys[:3], [0, 1, 2]))
        check_index()
        self.assertEqual(engine.index, set(keys[:3]))
        other.run(other.load(keys[:3], [0, 1, 2]))
        choose = random.Random(1)
        for _ in range(200):
            i = choose.randrange(len(keys) - 2)
            call = engine.store if choose.random() < 0.7 else engine.load
            call(keys[i : i + 2], [i % SLOTS, (i + 1) % SLOTS])
            engine.call("touch", [choose.choice(keys)], None)
            engine.reset_cache()
        check_index()
        self.wait_for(lambda: engine.step() or engine.metrics.get(METRIC + "evicted_chunks", 0) > ROOM)
        engine.tier._store.discard([name_of(next(iter(engine.index)))])
        check_index()
        engine.tier._store.clear()
        check_index()
        self.assertEqual(engine.index, set())
        engine.run(engine.store(keys[:3], [0, 1, 2]))
        check_index()
        self.assertEqual(engine.index, set(keys[:3]))

    @unittest.skipUnless(WITH_HOLDER, "it needs a holder")
    def test_events_follow_the_holder(self):
        one, two = self.engine(WITH_EVENTS), self.engine(WITH_EVENTS)
        keys = [key_of(i) for i in range(ROOM + 4)]

        def check_index(engine, expected):
            self.wait_for(lambda: engine.step() or engine.index == set(expected))

        one.run(one.store(keys[:4], [0, 1, 2, 3]))
        check_index(one, keys[:4])
        two.run(two.store(keys[:1], [0]))  # of both engines now; it counts as used
        two.run(two.store(keys[4:], range(4, ROOM + 4)))  # evicts those of the other engine
        there = {key for key in keys if one.lookup(key) == HIT}
        self.assertEqual(len(there), ROOM)
        check_index(one, there & set(keys[:4]))
        check_index(two, there - set(keys[1:4]))
        self.wait_for(lambda: one.step() or one.metrics.get(METRIC + "evicted_chunks") == 4)
        for index in range(2):
            kill(self.holder)
            check_index(two, [])
            # Chunks are missed, and nothing is stored, until there is another holder.
            self.wait_for(lambda: HIT not in [one.lookup(key) for key in keys])
            self.assertFalse(one.run(one.store(keys[:1], [0])).success)
            self.assertFalse(one.run(one.load(keys[:1], [0])).success)
            self.wait_for(lambda: one.step() or one.metrics.get(METRIC + "capacity_bytes") == 0)
            self.holder = self.hold(ROOM * ROW)
            self.assertTrue(one.run(one.store(keys[index : index + 1], [index])).success)
            check_index(one, keys[index : index + 1])
            self.wait_for(lambda: one.step() or one.metrics.get(METRIC + "chunks") == 1)
            self.assertEqual(one.metrics[METRIC + "evicted_chunks"], 4)  # counters never go back
            self.wait_for(lambda: two.lookup(keys[index]) == HIT)

    @unittest.skipUnless(WITH_HOLDER, "it needs a holder")
    def test_events_that_are_lost(self):
        read, reads = _exchange_core.read_events, []

        def lose(exchange, holder, number, *rest):
            reads.append(number)
            time.sleep(0.01)
            return read(exchange, 1, 1, *rest)  # of another holder

        engine = self.engine(WITH_EVENTS)
        keys = [key_of(i) for i in range(3)]
        with unittest.mock.patch.object(_exchange_core, "read_events", lose):
            engine.run(engine.store(keys, [0, 1, 2]))
            self.wait_for(lambda: engine.step() or engine.index == set(keys))
            count = len(reads)
            self.wait_for(lambda: len(reads) > count + 2)  # what is new has been looked at
            engine.tier._store.discard(keys[:1])
            self.wait_for(lambda: engine.step() or engine.index == set(keys[1:]))

    @unittest.skipUnless(WITH_HOLDER, "it needs a holder")
    def test_a_chunk_that_is_removed_before_it_is_noted(self):
        engine = self.engine(WITH_EVENTS)
        key, note = key_of(1), engine.tier._inventory.note_stored

        def note_late(names, keys):
            engine.tier._store.discard(names)
            # An event that the thread has seen after that of the removal.
            engine.tier._store.put([b"another"], [b"block"])
            self.wait_for(lambda: engine.tier._watch._position[1] >= 3)
            note(names, keys)

        engine.tier._inventory.note_stored = note_late
        self.assertTrue(engine.run(engine.store([key], [0])).success)
        self.wait_for(lambda: engine.step() or engine.index == set())
        self.assertEqual(engine.lookup(key), MISS)

    @unittest.skipUnless(WITH_HOLDER, "it needs a holder")
    def test_an_engine_that_is_there_before_the_holder(self):
        engine = TieringOffloadingManager(WITH_EVENTS, TIER | {"holder": self.name}, SLOTS, ROW)
        self.addCleanup(engine.shutdown)
        self.assertEqual(engine.lookup(key_of(1)), MISS)
        self.assertFalse(engine.run(engine.store([key_of(1)], [0])).success)
        self.assertFalse(engine.run(engine.load([key_of(1)], [0])).success)
        self.hold(ROOM * ROW)
        self.assertTrue(engine.run(engine.store([key_of(1)], [0])).success)
        self.wait_for(lambda: engine.lookup(key_of(1)) == HIT)
        self.wait_for(lambda: engine.step() or engine.index == {key_of(1)})

    @unittest.skipUnless(WITH_HOLDER, "it needs a holder")
    def test_a_holder_that_is_stopped(self):
        with unittest.mock.patch.object(_common, "HOLDER_SECONDS", 0.1):
            engine = self.engine(WITH_EVENTS)
        keys = [key_of(i) for i in range(ROOM + 2)]
        for i, key in enumerate(keys[:-1]):
            self.wait_for(lambda: engine.run(engine.store([key], [i])).success)
        there = [key for key in keys[:-1] if engine.lookup(key) == HIT]
        self.assertEqual(len(there), ROOM)
        self.wait_for(lambda: engine.step() or engine.metrics.get(METRIC + "evicted_chunks") == 1)
        self.holder.send_signal(signal.SIGSTOP)
        self.addCleanup(self.holder.send_signal, signal.SIGCONT)
        os.waitid(os.P_PID, self.holder.pid, os.WSTOPPED | os.WNOWAIT)
        for _ in range(2):
            self.assertFalse(engine.run(engine.store(keys[-1:], [1])).success)
            self.assertEqual((engine.lookup(there[0]), engine.lookup(keys[-1])), (HIT, MISS))
            self.assertTrue(engine.run(engine.load(there[:1], [2])).success)
        self.wait_for(lambda: engine.step() or engine.metrics[METRIC + "capacity_bytes"] == 0)
        self.holder.send_signal(signal.SIGCONT)
        self.wait_for(lambda: engine.run(engine.store(keys[-1:], [1])).success)
        self.wait_for(lambda: engine.step() or engine.metrics[METRIC + "evicted_chunks"] >= 2)
        self.assertEqual(engine.metrics[METRIC + "evicted_chunks"], 2)
        self.wait_for(lambda: engine.step() or engine.index == {key for key in keys if engine.lookup(key) == HIT})

    def test_an_engine_that_ends_without_a_shutdown(self):
        self.store_options(ROOM * ROW)
        process = self.start("vllm", "leave", engines.__file__, self.name)
        self.assertEqual(process.wait(LIMIT), 0)

    def test_an_engine_without_events_gets_none(self):
        for config, options in ((CONFIG, {}), (WITH_EVENTS, {"enable_kv_events": False})):
            engine = self.engine(config, **options)
            engine.run(engine.store([key_of(1)], [0]))
            self.assertEqual(list(engine.call("take_events")), [])

    def test_metrics(self):
        one, two = self.engine(), self.engine()
        keys = [key_of(i) for i in range(ROOM + 2)]
        for i, key in enumerate(keys):
            one.run(one.store([key], [i]))
        one.run(one.load(keys[-1:], [0]))
        two.run(two.load(keys[-3:] + keys[:1], [0, 1, 2, 3]))
        expected = {"stored_chunks": ROOM + 2, "evicted_chunks": 2, "oldest_store_seconds": 0}
        expected |= {"shared_hit_chunks": 1, "members": 2} if WITH_HOLDER else {"own_hit_chunks": 1, "members": 1}
        expected |= {"chunks": ROOM, "bytes": ROOM * ROW, "capacity_bytes": ROOM * ROW}
        self.wait_for(lambda: one.step() or one.metrics == {METRIC + name: value for name, value in expected.items()})
        counts = (METRIC + "shared_hit_chunks", METRIC + "missed_chunks")
        self.wait_for(lambda: two.step() or [two.metrics.get(name) for name in counts] == [3, 1])
        others = {"own_hit_chunks", "shared_hit_chunks", "missed_chunks", "dropped_stores"}
        self.assertEqual(set(one.definitions), {METRIC + name for name in {*expected, *others}})
        self.wait_for(lambda: two.call("get_stats") is None)  # handed over once

    def test_stores_that_wait_for_too_long_are_dropped(self):
        engine = self.engine(threads=2)
        copies = engine.tier._copies
        engine.run(engine.store([key_of(9)], [9]))
        memory = SlowMemory(engine.rows.nbytes)
        engine.tier._rows = memory.array.reshape(engine.rows.shape)
        with memory.unreadable(), self.assertLogs("shmem_kv.adapters", "WARNING") as logs:
            stuck = [engine.store([key_of(i)], [i]) for i in (1, 2)]
            self.wait_for(lambda: len(copies._running) == 2)
            waits = engine.store([key_of(3)], [3])
            self.wait_for(lambda: copies.oldest() > 0.1)
            engine.step()
            self.assertGreaterEqual(engine.metrics[METRIC + "oldest_store_seconds"], 0.1)
            copies._store_wait = 0.001  # no sooner: a slow machine would have dropped the others
            self.wait_for(lambda: engine.step() or waits in engine.results)
            late = engine.store([key_of(4)], [4])
            self.assertEqual(engine.lookup(key_of(9)), HIT)  # no lookup waits for a copy
            engine.step()
            self.assertEqual([engine.results[job].success for job in (waits, late)], [False, False])
            self.assertEqual(set(engine.jobs), set(stuck))  # a copy that has begun ends
        self.assertEqual(len(logs.output), 1)
        copies._store_wait = 0
        self.assertEqual([engine.run(job).success for job in stuck], [True, True])
        self.assertTrue(engine.run(engine.store([key_of(5)], [5])).success)
        self.assertEqual([engine.lookup(key_of(i)) for i in range(1, 6)], [HIT, HIT, MISS, MISS, HIT])
        engine.step()
        self.assertEqual((engine.metrics[METRIC + "dropped_stores"], engine.metrics[METRIC + "oldest_store_seconds"]), (2, 0))

    def test_loads_go_before_stores(self):
        engine = self.engine()
        engine.run(engine.store([key_of(0)], [0]))
        memory = SlowMemory(engine.rows.nbytes)
        engine.tier._rows = memory.array.reshape(engine.rows.shape)
        with memory.unreadable():
            jobs = [engine.store([key_of(1)], [1])]
            self.assertTrue(memory.reached.wait(LIMIT))
            jobs += [engine.store([key_of(2)], [2]), engine.load([key_of(0)], [3])]
        engine.reset_cache()
        self.assertEqual(list(engine.results)[-3:], [jobs[0], jobs[2], jobs[1]])

    def test_a_detector_of_vllm_keeps_stores_away(self):
        detector = types.SimpleNamespace(is_under_pressure=lambda: True)
        engine = self.engine(backpressure=detector)
        self.assertIs(engine.tier.bp_detector, detector)
        self.assertIsNone(engine.store([key_of(1)], [0]))

    def test_engines_that_differ_share_nothing(self):
        one = self.engine()
        one.run(one.store([key_of(1)], [0]))
        different = dataclasses.replace
        for config in (
            different(CONFIG, model=OffloadingModelConfig("model", "float16")),
            different(CONFIG, model=OffloadingModelConfig("another", "bfloat16")),
            different(CONFIG, parallel=OffloadingParallelConfig(tp_size=2, world_size=2)),
            different(CONFIG, cache=OffloadingCacheConfig(32, 1)),
            different(CONFIG, groups=CONFIG.groups[:1]),
            different(CONFIG, kv_cache_layout="BLHNC"),
        ):
            self.assertEqual(self.engine(config).lookup(key_of(1)), MISS, config)
        self.assertEqual(self.engine(row=2 * ROW).lookup(key_of(1)), MISS)
        self.assertEqual(self.engine(namespace="other").lookup(key_of(1)), MISS)
        os.environ["PYTHONHASHSEED"] = "7"
        self.addCleanup(os.environ.pop, "PYTHONHASHSEED", None)
        self.assertEqual(self.engine().lookup(key_of(1)), MISS)
        del os.environ["PYTHONHASHSEED"]
        other_place = different(CONFIG, engine_id="2", parallel=OffloadingParallelConfig(rank=1, data_parallel_index=1))
        self.assertEqual(self.engine(other_place).lookup(key_of(1)), HIT)

    def test_configuration(self):
        with self.assertRaisesRegex(ValueError, "unknown secondary tier 'none'"):
            self.engine(type="none", module_path=None)
        with self.assertRaises(AttributeError):
            self.engine(type="NoTier")
        with self.assertRaisesRegex(ValueError, '"exchange" is missing'):
            self.engine(exchange="", holder=None)
        with self.assertRaisesRegex(ValueError, "a holder is that of its exchange"):
            self.engine(exchange="another", holder=self.name)
        with self.assertRaisesRegex(ValueError, '"tenant" is of a holder'):
            self.engine(exchange=self.name, holder=None, tenant="a")
        with self.assertRaisesRegex(ValueError, "store_bytes is '5 apples'"):
            self.engine(store_bytes="5 apples")
        with self.assertRaisesRegex(TypeError, "colour"):
            self.engine(colour="blue")
        with self.assertRaisesRegex(ValueError, "namespace"):
            self.engine(config=None)
        self.assertEqual(self.engine(config=None, namespace="all of it").lookup(key_of(1)), MISS)
        with self.assertRaisesRegex(ValueError, "store_wait is -1"):
            self.engine(store_wait=-1)
        self.assertEqual(self.engine(threads=2).tier.tier_type, "ShmemTier")


if __name__ == "__main__":
    unittest.main(verbosity=0)

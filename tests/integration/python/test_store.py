# SPDX-License-Identifier: Apache-2.0
"""Stores: what they hold and evict, also while blocks are read, and what they read from other members."""

import errno
import threading
import unittest

import numpy as np
import shmem_kv
from exchange_member import BLOCK, LAYOUT
from members import ExchangeTest, kill


def filled(value, size=BLOCK):
    return np.full(size, value, np.uint8)


class Stores(ExchangeTest):
    def setUp(self):
        super().setUp()
        self.exchange = self.join(lease_time=60)
        self.store = shmem_kv.Store(self.exchange, 4 * BLOCK)
        self.other = self.join()

    def put(self, key, value, layout=1, size=BLOCK):
        return int(self.store.put(key, filled(value, size), layout)[0])

    def test_evict_the_least_recently_used(self):
        for i in range(4):
            self.assertEqual(self.put(f"{i}", i), 0)
        self.store.touch("0")
        self.assertEqual(self.put("4", 4), 0)
        self.assertEqual(list(self.store.contains([f"{i}" for i in range(5)])), [True, False, True, True, True])
        self.assertEqual(list(self.other.find([f"{i}" for i in range(5)]).hits()), [True, False, True, True, True])
        self.assertEqual(list(self.store.discard(["0", "none"])), [True, False])
        stats = self.store.stats()
        self.assertEqual((stats.blocks, stats.bytes, stats.stored, stats.evicted), (3, 3 * BLOCK, 5, 2))
        self.store.clear()
        self.assertEqual(self.store.stats().bytes, 0)

    def test_hold_blocks_of_different_sizes(self):
        sizes = [100, BLOCK, 5000, 64, 2 * BLOCK]
        for turn in range(60):
            i = turn % len(sizes)
            self.assertEqual(self.put(f"{turn}", turn, size=sizes[i]), 0)
            to = filled(255, sizes[i])
            self.assertEqual(list(self.store.get(f"{turn}", to, 1)), [0])
            self.assertTrue((to == turn).all())
            self.other.pull(self.other.find(f"{turn}"), to)
        self.assertEqual(self.put("large", 1, size=4 * BLOCK), 0)
        self.assertEqual(self.put("too large", 1, size=4 * BLOCK + 1), -errno.ENOSPC)
        self.assertEqual(self.store.stats().blocks, 1)

    def test_never_change_what_is_leased(self):
        for i in range(4):
            self.put(f"{i}", i)
        found = self.other.find([f"{i}" for i in range(4)], lease=60).check()
        self.assertEqual(self.put("4", 4), -errno.ENOSPC)
        self.assertEqual(self.put("0", 0), -errno.EBUSY)
        self.assertFalse(self.other.find("0").hits().any())
        self.other.release(found)
        self.assertEqual(self.put("4", 4), 0)
        self.assertEqual(self.put("0", 0), 0)

    def test_replace_a_block_of_another_layout_or_size(self):
        self.put("key", 1)
        self.assertEqual(self.put("key", 2), 0)  # the same block by definition
        to = filled(0)
        self.assertEqual(list(self.store.get("key", to, 1)), [0])
        self.assertTrue((to == 1).all())
        self.assertEqual(self.put("key", 3, layout=2), 0)
        self.assertEqual(list(self.store.get("key", to, 1)), [-errno.ENOENT])
        self.assertEqual(list(self.store.get("key", to, 2)), [0])
        self.assertTrue((to == 3).all())
        self.assertEqual(list(self.store.get("key", filled(0, 7), 2)), [-errno.EMSGSIZE])
        self.assertEqual(self.put("", 1), -errno.EINVAL)

    def test_publish_no_more_than_the_exchange_may(self):
        small = shmem_kv.Store(self.join(blocks=3), 64 * BLOCK)
        for i in range(9):
            self.assertEqual(list(small.put(f"s{i}", filled(i))), [0])
        self.assertEqual(small.stats().blocks, 3)

    def test_read_from_another_process_until_it_is_killed(self):
        owner = self.start("store")
        self.wait_for(lambda: len(self.exchange.members()) == 2)
        to = np.zeros((3, BLOCK), np.uint8)
        keys = ["stored 3", "none", "stored 5"]
        self.assertEqual(list(self.store.get(keys, list(to), LAYOUT)), [0, -errno.ENOENT, 0])
        self.assertEqual((to[0, 0], to[2, 0]), (3, 5))
        self.assertEqual(list(self.store.get(keys[0], to[0], LAYOUT + 1)), [-errno.EPROTOTYPE])
        self.assertEqual(list(self.store.get(keys[0], to[0, :-1], LAYOUT)), [-errno.EMSGSIZE])
        self.assertEqual(list(self.store.contains(keys, LAYOUT)), [True, False, True])
        self.assertEqual(self.store.stats().remote_hits, 2)
        kill(owner)
        self.wait_for(lambda: self.store.get(keys[0], to[0], LAYOUT)[0] == -errno.ENOENT)
        self.assertFalse(self.store.contains(keys, LAYOUT).any())

    def test_threads_store_and_read_the_same_blocks(self):
        wrong = []

        def work(store, seed):
            random = np.random.default_rng(seed)
            for _ in range(300):
                key = int(random.integers(0, 12))
                size = (64, 5000, BLOCK)[key % 3]
                if random.integers(0, 2):
                    store.put(f"{key}", filled(key, size), 1)
                else:
                    to = filled(255, size)
                    status = int(store.get(f"{key}", to, 1)[0])
                    if status == 0 and not (to == key).all():
                        wrong.append(key)
                    elif status not in (0, -errno.ENOENT, -errno.ESTALE):
                        wrong.append(status)

        far = shmem_kv.Store(self.join(), 4 * BLOCK)
        threads = [threading.Thread(target=work, args=(store, i)) for i, store in enumerate([self.store, far] * 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_layouts_differ_in_every_part(self):
        parts = {"model": "m", "dtype": "bfloat16", "tp": (0, 2)}
        layout = shmem_kv.layout_of(**parts)
        self.assertEqual(layout, shmem_kv.layout_of(**dict(reversed(parts.items()))))
        for name, value in {"model": "n", "dtype": "float16", "tp": (1, 2), "seed": 0}.items():
            self.assertNotEqual(layout, shmem_kv.layout_of(**(parts | {name: value})))

    def test_layouts_are_of_values_that_are_equal_in_every_process(self):
        for value in ({"a", "b"}, [frozenset("ab")], {"x": {1}}, object(), (1, lambda: 0)):
            with self.assertRaisesRegex(TypeError, "layout_of: part has"):
                shmem_kv.layout_of(part=value)
        shmem_kv.layout_of(part={"a": [1, 2.5, None, True, b"x", np.dtype("int8")]})


if __name__ == "__main__":
    unittest.main(verbosity=0)

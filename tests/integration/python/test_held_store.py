# SPDX-License-Identifier: Apache-2.0
"""Stores whose blocks are in the holder of an exchange: they outlive the process, and the holder may come and go."""

import errno
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import shmem_kv
from members import LIMIT, ExchangeTest, end, kill

BLOCK = 65536
LAYOUT = 7
_ANOTHER = """
import sys, numpy as np, shmem_kv
store = shmem_kv.Store(holder=sys.argv[1], answer_time=60)
print(store.put("of another", np.full(65536, 9, np.uint8), 7).tolist(), flush=True)
"""


def filled(value, size=BLOCK):
    return np.full(size, value, np.uint8)


class HeldStores(ExchangeTest):
    def hold(self, *options):
        command = [os.path.join(os.environ["GBA_BIN"], "kv_exchange"), "hold", self.name, "--bytes", "4MiB", *options]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(end, process)
        self.assertIn("holding 4 MiB", process.stdout.readline())
        return process

    def store(self, **options):
        store = shmem_kv.Store(holder=self.name, answer_time=LIMIT, **options)
        self.addCleanup(store.exchange.close)
        return store

    def test_blocks_outlive_their_process(self):
        self.hold()
        command = [sys.executable, "-c", _ANOTHER, self.name]
        output = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True).stdout
        self.assertEqual(output, "[0]\n")
        store = self.store()
        to = filled(0)
        self.assertEqual(list(store.get("of another", to, LAYOUT)), [0])
        self.assertTrue((to == 9).all())
        self.assertEqual(list(store.put("of another", filled(9), LAYOUT)), [0])
        stats = store.stats()
        self.assertEqual((stats.blocks, stats.bytes, stats.capacity), (1, BLOCK, 4 << 20))
        self.assertEqual((stats.stored, stats.local_hits, stats.remote_hits), (0, 0, 1), "it was there already")

    def test_a_put_that_raises_leaves_no_key_that_is_being_stored(self):
        self.hold()
        store = self.store()
        store.exchange.close()
        with self.assertRaisesRegex(RuntimeError, "closed"):
            store.put(["0", "1"], [filled(0), filled(1)], LAYOUT)
        self.assertFalse(store.storing(b"0") or store.storing(b"1"))

    def test_the_calls_of_a_store(self):
        self.hold("--tenant-bytes", "small=1MiB")
        store = self.store()
        keys = [f"{i}" for i in range(4)]
        self.assertEqual(list(store.put(keys, [filled(i) for i in range(4)], LAYOUT)), [0] * 4)
        self.assertEqual(list(store.contains([*keys, "none"], LAYOUT)), [True] * 4 + [False])
        self.assertTrue(store.holds(b"1", LAYOUT))
        self.assertFalse(store.holds(b"1", LAYOUT + 1))
        self.assertFalse(store.storing(b"1"))
        store.touch(keys)
        buffers = [filled(9) for _ in range(3)] + [filled(9, 100)]
        self.assertEqual(list(store.get(["0", "none", "2", "3"], buffers, LAYOUT)), [0, -errno.ENOENT, 0, -errno.EMSGSIZE])
        self.assertEqual([int(one[0]) for one in buffers], [0, 9, 2, 9])
        self.assertEqual(list(store.get("1", filled(9), LAYOUT + 1)), [-errno.EPROTOTYPE])
        self.assertEqual(list(store.discard(["1", "none"])), [True, False])
        self.assertFalse(store.contains(["1"], LAYOUT)[0])
        small = self.store(tenant="small")
        for i in range(32):
            self.assertEqual(list(small.put(f"small {i}", filled(i), LAYOUT)), [0])
        self.assertEqual(int(small.contains([f"small {i}" for i in range(32)], LAYOUT).sum()), 16)
        self.assertEqual(list(store.contains(keys, LAYOUT)), [True, False, True, True])
        small.clear()
        self.assertFalse(small.contains([f"small {i}" for i in range(32)], LAYOUT).any())
        self.assertTrue(store.contains(["0"], LAYOUT)[0])

    def test_a_holder_that_comes_and_goes(self):
        store = self.store()
        self.assertEqual(list(store.put("key", filled(1), LAYOUT)), [-errno.ENOTCONN])
        self.assertEqual(list(store.get("key", filled(1), LAYOUT)), [-errno.ENOENT])
        self.assertEqual(list(store.discard("key")), [False])
        self.assertEqual(store.stats().capacity, 0)
        for _ in range(2):
            holder = self.hold()
            self.assertEqual(list(store.put("key", filled(1), LAYOUT)), [0])
            to = filled(0)
            self.wait_for(lambda into=to: list(store.get("key", into, LAYOUT)) == [0])
            self.assertTrue((to == 1).all())
            kill(holder)
            self.wait_for(lambda: not store.contains(["key"], LAYOUT)[0])
            self.assertIn(store.put("key", filled(1), LAYOUT)[0], (-errno.ENOTCONN, -errno.EOWNERDEAD))

    def test_meet_in_a_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            self.hold("--directory", folder)
            store = self.store(directory=folder)
            self.assertEqual(list(store.put("key", filled(1), LAYOUT)), [0])
            self.assertEqual(list(self.store(directory="").put("key", filled(1), LAYOUT)), [-errno.ENOTCONN])

    def test_arguments(self):
        exchange = self.join()
        for arguments, options in [
            ((), {}),
            ((exchange, 4096), {"holder": self.name}),
            ((exchange,), {"holder": "another"}),
            ((exchange, 4096), {"tenant": "a"}),
            ((exchange, 4096), {"directory": "/tmp"}),
        ]:
            with self.assertRaises(ValueError, msg=f"{arguments} {options}"):
                shmem_kv.Store(*arguments, **options)
        with self.assertRaises(ValueError):
            shmem_kv.Store(exchange, holder=self.name, tenant="a b")
        store = shmem_kv.Store(exchange, holder=self.name)
        self.assertIs(store.exchange, exchange)
        with self.assertRaises(ValueError):
            store.put(["a", "b"], [filled(1)])


if __name__ == "__main__":
    unittest.main(verbosity=0)

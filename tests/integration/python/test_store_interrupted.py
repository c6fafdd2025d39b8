# SPDX-License-Identifier: Apache-2.0
"""Stores whose calls are interrupted by exceptions anywhere, and that store one block in several threads."""

import errno
import pathlib
import random
import signal
import sys
import threading
import unittest

import numpy as np
import shmem_kv
from exchange_member import BLOCK
from members import LIMIT, ExchangeTest
from slow_memory import SlowMemory

_PACKAGE = str(pathlib.Path(shmem_kv.__file__).parent)
ROOM = 8  # blocks


class Alarm(Exception):
    """What the handler of a signal raises."""


def block_of(key):
    """The bytes that a key stands for."""
    return np.full(BLOCK, int(key) % 251, np.uint8)


def interrupted_at(line, kind, call):
    """Makes a call in which the n-th line of the package raises. Returns whether there are as many lines."""
    left = line

    def trace(frame, event, _argument):
        nonlocal left
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise kind
        return trace

    sys.settrace(trace)
    try:
        call()
    except kind:
        pass
    finally:
        sys.settrace(None)
    return left <= 0


class InterruptedStores(ExchangeTest):
    def setUp(self):
        super().setUp()
        self.store = shmem_kv.Store(self.join(), ROOM * BLOCK)
        self.other = self.join()
        self.keys = []

    def new_keys(self, count):
        keys = [f"{len(self.keys) + i}" for i in range(count)]
        self.keys += keys
        return keys

    def put_new(self, count):
        keys = self.new_keys(count)
        return self.store.put(keys, [block_of(key) for key in keys])

    def check(self):
        """What others find is right, also after the rest of the memory was used again, and no block is in between."""
        for _ in range(2):
            found = self.other.find(self.keys)
            hits = np.flatnonzero(found.hits())
            to = np.zeros((len(hits), BLOCK), np.uint8)
            self.other.pull(self.other.find([self.keys[i] for i in hits]), list(to))
            for row, i in zip(to, hits):
                self.assertTrue((row == block_of(self.keys[i])).all(), f"another block than that of key {i}")
                self.assertTrue(self.store.holds(self.keys[i].encode()), f"key {i} is published, and not stored")
            self.assertFalse(any(self.store.storing(key.encode()) for key in self.keys))
            self.assertEqual(list(self.put_new(2)), [0, 0])

    def check_room(self):
        """No room was lost."""
        self.store.clear()
        self.assertEqual(list(self.store.put("whole", np.zeros(ROOM * BLOCK, np.uint8))), [0])
        self.store.clear()

    def test_interrupt_each_line_of_each_call(self):
        calls = {
            "put": lambda: self.put_new(3),
            "get": lambda: self.store.get(self.keys[-3:] + ["none"], list(np.zeros((4, BLOCK), np.uint8))),
            "contains": lambda: self.store.contains(self.keys[-3:] + ["none"]),
            "discard": lambda: self.store.discard(self.keys[-3:]),
            "clear": self.store.clear,
        }
        for name, call in calls.items():
            for kind in (KeyboardInterrupt, MemoryError):
                line = 1
                self.put_new(3)
                while interrupted_at(line, kind, call):
                    self.check()
                    line += 1
                self.assertGreater(line, 1, name)
                self.check_room()

    def test_signals_that_raise_at_any_time(self):
        def raise_alarm(_number, _frame):
            raise Alarm

        before = signal.signal(signal.SIGALRM, raise_alarm)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        generator = random.Random(1)
        interrupted = 0
        for _ in range(400):
            try:
                signal.setitimer(signal.ITIMER_REAL, generator.uniform(1e-5, 3e-4))
                try:
                    self.put_new(ROOM // 2)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Alarm:
                interrupted += 1
        self.assertGreater(interrupted, 0)
        self.check()
        self.check_room()


class StoresOfOneBlock(ExchangeTest):
    def setUp(self):
        super().setUp()
        self.exchange = self.join()
        self.store = shmem_kv.Store(self.exchange, ROOM * BLOCK)
        self.other = self.join()
        self.taken = self.exchange.allocate(BLOCK)

    def put_twice(self):
        """Two threads store one block; the second begins while the first one copies it."""
        memory = SlowMemory(BLOCK)
        results = {}

        def put(name, source):
            results[name] = int(self.store.put("key", source)[0])

        first = threading.Thread(target=put, args=("first", memory.array))
        second = threading.Thread(target=put, args=("second", np.zeros(BLOCK, np.uint8)))
        with memory.unreadable():
            first.start()
            self.assertTrue(memory.reached.wait(LIMIT))
            self.assertTrue(self.store.storing(b"key"))
            second.start()
            second.join(0.2)
            self.assertNotIn("second", results)
            memory.go.set()
            first.join(LIMIT)
            second.join(LIMIT)
        return results["first"], results["second"]

    def test_the_second_is_stored_when_the_first_is(self):
        self.assertEqual(self.put_twice(), (0, 0))
        self.assertTrue(self.other.find("key").hits().all())

    def test_the_second_fails_as_the_first_does(self):
        self.exchange.publish("key", self.taken.part(0, BLOCK))
        self.assertEqual(self.put_twice(), (-errno.EEXIST, -errno.EEXIST))
        self.assertFalse(self.store.holds(b"key"))

    def test_equal_keys_in_one_call(self):
        blocks = [np.ones(BLOCK, np.uint8)] * 2
        self.assertEqual(list(self.store.put(["key", "key"], blocks)), [0, 0])
        self.exchange.publish("taken", self.taken.part(0, BLOCK))
        self.assertEqual(list(self.store.put(["taken", "taken"], blocks)), [-errno.EEXIST, -errno.EEXIST])
        self.assertEqual(self.store.stats().blocks, 1)


if __name__ == "__main__":
    unittest.main(verbosity=0)

# SPDX-License-Identifier: Apache-2.0
"""Engines that are killed while others read their chunks, and while they read those of others; with a holder, also the
holder."""

import os
import pathlib
import random
import sys
import threading
import unittest

import engines
from engines import ALL, COUNT, SIZE
from members import WITH_HOLDER, ExchangeTest, kill

PROGRAM = pathlib.Path(engines.__file__)
KILLS = 60 if os.environ.get("GBA_SOAK") else 4


class KilledEngines(ExchangeTest):
    def setUp(self):
        super().setUp()
        if WITH_HOLDER:
            self.holder = self.hold(COUNT * SIZE)

    def engine(self, kind):
        holder = {"holder": self.name, "tenant": kind} if WITH_HOLDER else {}
        engine = engines.KINDS[kind](self.name, **holder)
        self.addCleanup(engine.close)
        return engine

    def another(self, kind, role):
        """Another engine in its own process, which is ready."""
        return self.start(kind, role, PROGRAM, self.name)

    def check_owners(self, kind):
        """Whatever is read is right. What a dead engine had is missed, unless the holder has it, and what its successor has
        is found."""
        reader = self.engine(kind)
        for _ in range(KILLS):
            owner = self.another(kind, "own")
            self.wait_for(lambda: any(content is not None for content in reader.load(range(COUNT))))
            timer = threading.Timer(random.uniform(0, 0.1), owner.kill)
            timer.start()
            while timer.is_alive():
                contents = reader.load(range(COUNT))
                self.assertTrue(all(engines.is_right(i, content) for i, content in enumerate(contents)))
            kill(owner)
            if WITH_HOLDER:
                contents = reader.load(range(COUNT))
                self.assertTrue(all(engines.is_right(i, content) for i, content in enumerate(contents)))
                self.wait_for(lambda: reader.store(range(COUNT)))  # also what the dead one was storing
                contents = reader.load(range(COUNT))
                if None in contents:  # the last call of the dead one was clear(), which the holder has executed since
                    self.wait_for(lambda: reader.store(range(COUNT)))
                    contents = reader.load(range(COUNT))
                self.assertNotIn(None, contents)
                reader.clear()
            self.wait_for(lambda: not any(reader.is_there(i) for i in range(COUNT)))
            self.assertEqual(reader.load(range(COUNT)), [None] * COUNT)

    def check_readers(self, kind):
        """A reader that is killed leaves nothing that keeps the owner from evicting."""
        owner = self.engine(kind)
        self.assertTrue(owner.store(range(COUNT)))
        for i in range(KILLS):
            reader = self.another(kind, "read")
            threading.Event().wait(random.uniform(0, 0.1))
            self.assertIsNone(reader.poll(), "the reader has seen wrong bytes")
            kill(reader)
            numbers = range(COUNT, 2 * COUNT) if i % 2 == 0 else range(COUNT)
            self.wait_for(lambda: owner.store(numbers))
            self.assertEqual([number for number in ALL if owner.is_there(number)], list(numbers))

    def check_holder(self, kind):
        """Engines outlive their holder: they find nothing, until there is another one."""
        one, two = self.engine(kind), self.engine(kind)
        for _ in range(KILLS):
            self.wait_for(lambda: one.store(range(COUNT)))
            self.wait_for(lambda: None not in two.load(range(COUNT)))  # it has seen the new holder
            timer = threading.Timer(random.uniform(0, 0.1), self.holder.kill)
            timer.start()
            while timer.is_alive():
                one.store(range(COUNT, 2 * COUNT))
                contents = two.load(ALL)
                self.assertTrue(all(engines.is_right(i, content) for i, content in enumerate(contents)))
                one.store(range(COUNT))
            kill(self.holder)
            self.assertFalse(one.store([0]))
            self.wait_for(lambda: not any(two.is_there(i) for i in ALL))
            self.assertEqual(two.load(range(COUNT)), [None] * COUNT)
            self.holder = self.hold(COUNT * SIZE)

    def check(self, kind):
        self.check_owners(kind)
        self.check_readers(kind)
        if WITH_HOLDER:
            self.check_holder(kind)

    def test_vllm(self):
        self.check("vllm")

    def test_lmcache(self):
        self.check("lmcache")

    def test_sglang(self):
        try:
            import torch  # noqa: F401
        except ImportError as error:
            self.skipTest(f"{error} (Debian: python3-torch)")
        self.check("sglang")


if __name__ == "__main__":
    unittest.main(verbosity=0)

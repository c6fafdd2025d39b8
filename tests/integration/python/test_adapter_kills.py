# SPDX-License-Identifier: Apache-2.0
"""Engines that are killed while others read their chunks, and while they read those of others."""

import os
import pathlib
import random
import sys
import threading
import unittest

import engines
from engines import ALL, COUNT
from members import ExchangeTest, kill

PROGRAM = pathlib.Path(engines.__file__)
KILLS = 60 if os.environ.get("GBA_SOAK") else 4


class KilledEngines(ExchangeTest):
    def engine(self, kind):
        engine = engines.KINDS[kind](self.name)
        self.addCleanup(engine.close)
        return engine

    def another(self, kind, role):
        """Another engine in its own process, which is ready."""
        return self.start(kind, role, PROGRAM, self.name)

    def check_owners(self, kind):
        """Whatever is read is right. What a dead engine had is missed, and what its successor has is found."""
        reader = self.engine(kind)
        loads = 0
        for _ in range(KILLS):
            owner = self.another(kind, "own")
            self.wait_for(lambda: any(content is not None for content in reader.load(range(COUNT))))
            timer = threading.Timer(random.uniform(0, 0.1), owner.kill)
            timer.start()
            while timer.is_alive():
                contents = reader.load(range(COUNT))
                self.assertTrue(all(engines.is_right(i, content) for i, content in enumerate(contents)))
                loads += len(contents) - contents.count(None)
            kill(owner)
            self.wait_for(lambda: not any(reader.is_there(i) for i in range(COUNT)))
            self.assertEqual(reader.load(range(COUNT)), [None] * COUNT)
        self.assertGreater(loads, 0)

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

    def test_vllm(self):
        self.check_owners("vllm")
        self.check_readers("vllm")

    def test_lmcache(self):
        self.check_owners("lmcache")
        self.check_readers("lmcache")

    def test_sglang(self):
        try:
            import torch  # noqa: F401
        except ImportError as error:
            self.skipTest(f"{error} (Debian: python3-torch)")
        self.check_owners("sglang")
        self.check_readers("sglang")


if __name__ == "__main__":
    unittest.main(verbosity=0)

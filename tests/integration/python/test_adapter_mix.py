# SPDX-License-Identifier: Apache-2.0
"""Engines of all kinds in one exchange at the same time: each shares blocks with those of its kind only."""

import importlib.util
import os
import random
import tempfile
import threading
import unittest

import engines
import shmem_kv
from engines import ALL, COUNT, SIZE
from members import WITH_HOLDER, ExchangeTest

KINDS = [kind for kind in engines.KINDS if kind != "sglang" or importlib.util.find_spec("torch")]
if len(KINDS) < len(engines.KINDS):
    print("skipped: sglang needs torch (Debian: python3-torch)")
ROUNDS = 30


class Mix(ExchangeTest):
    def setUp(self):
        super().setUp()
        if WITH_HOLDER:
            self.hold(len(KINDS) * COUNT * SIZE)
        self.opened = []
        self.addCleanup(self.close_all)
        self.pairs = {kind: [self.engine(kind) for _ in range(2)] for kind in KINDS}

    def engine(self, kind, **options):
        holder = {"holder": self.name, "tenant": kind} if WITH_HOLDER else {}
        engine = engines.KINDS[kind](self.name, **holder, **options)
        self.opened.append(engine)
        return engine

    def close_all(self):
        while self.opened:
            self.opened.pop().close()

    def found_by(self, kind):
        return [number for number in range(COUNT) if self.pairs[kind][1].is_there(number)]

    def test_kinds_share_nothing_with_each_other(self):
        for i, kind in enumerate(KINDS):
            self.assertEqual([self.found_by(other) for other in KINDS[i:]], [[]] * len(KINDS[i:]))
            self.assertTrue(self.pairs[kind][0].store(range(COUNT)))
            self.wait_for(lambda: self.found_by(kind) == list(range(COUNT)))
            contents = self.pairs[kind][1].load(range(COUNT))
            self.assertTrue(all(content is not None and engines.is_right(i, content) for i, content in enumerate(contents)))
        self.pairs[KINDS[0]][0].clear()
        self.wait_for(lambda: self.found_by(KINDS[0]) == [])
        self.assertEqual([self.found_by(kind) for kind in KINDS[1:]], [list(range(COUNT))] * (len(KINDS) - 1))

    def test_all_work_at_once(self):
        wrong, loaded = [], []

        def work(kind, engine, seed):
            choose = random.Random(seed)
            for _ in range(ROUNDS):
                numbers = sorted(choose.sample(ALL, 4))
                engine.store(numbers)
                numbers = sorted(choose.sample(ALL, 4))
                contents = engine.load(numbers)
                wrong.extend((kind, i) for i, content in zip(numbers, contents) if not engines.is_right(i, content))
                loaded.extend(kind for content in contents if content is not None)

        threads = []
        for i, kind in enumerate(KINDS):
            for j, engine in enumerate(self.pairs[kind]):
                threads.append(threading.Thread(target=work, args=(kind, engine, 2 * i + j)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(set(loaded), set(KINDS))

    @unittest.skipUnless(WITH_HOLDER, "it needs a holder")
    def test_chunks_outlive_their_engines(self):
        for kind in KINDS:
            self.assertTrue(self.pairs[kind][0].store(range(COUNT)))
        self.close_all()
        for kind in KINDS:
            engine = self.engine(kind)
            contents = engine.load(range(COUNT))
            self.assertTrue(all(content is not None and engines.is_right(i, content) for i, content in enumerate(contents)))
            self.assertTrue(engine.store(range(COUNT)))  # nothing is stored twice
        self.assertEqual(shmem_kv.Store(holder=self.name).stats().evicted, 0)

    def test_the_place_where_they_meet(self):
        """Engines in a folder are not found by engines outside, and the other way round."""
        volume = tempfile.TemporaryDirectory()
        self.addCleanup(volume.cleanup)
        os.chmod(volume.name, 0o777)  # as an emptyDir is
        folder = os.path.join(volume.name, "demo")
        if WITH_HOLDER:
            self.hold(COUNT * SIZE, "--directory", folder)
        for kind in KINDS:
            inside = [self.engine(kind, directory=folder) for _ in range(2)]
            self.assertTrue(inside[0].store([1]))
            self.wait_for(lambda: inside[1].is_there(1))
            self.assertFalse(self.pairs[kind][0].is_there(1))


if __name__ == "__main__":
    unittest.main(verbosity=0)

# SPDX-License-Identifier: Apache-2.0
"""Caches and operators. The tests compute the expected results block by block, for the caches of all PEs."""

import asyncio
import errno
import os
import threading
import urllib.request

import numpy as np
import shmem_kv
from pes import PeTest, main
from shmem_kv import Cache, KVShuffle, Operator, Plan

BLOCKS = 12
BLOCK = (2, 4, 8)  # heads, tokens, numbers
# For each format with three layers: the shape, and the index of its block dimension.
LAYERED = {
    "apart": ((3, BLOCKS, *BLOCK), 1),
    "by_layer": ((3, 2, BLOCKS, *BLOCK), 2),
    "interleaved": ((3, BLOCKS, 2, *BLOCK), 1),
    "by_block": ((BLOCKS, 3, 2, *BLOCK), 0),
    "latent": ((3, BLOCKS, 4, 8), 1),
}
RING = [(pe, block, (pe + 1) % 3, (block + 5) % BLOCKS) for pe in range(3) for block in (0, 1, 2, 7)]


def content(pe, which, shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    numbers = np.random.default_rng([pe, which]).integers(0, 256, size, np.uint8)
    return numbers.view(dtype).reshape(shape)


def blocks_of(array, axis):
    return np.moveaxis(array, axis, 0)


class ShuffleTest(PeTest):
    def fill(self, shape, dtype=np.float16, which=0):
        array = shmem_kv.empty(shape, dtype)
        array[:] = content(self.me, which, shape, dtype)
        return array

    def expect(self, array, moves, axis, mode="copy", which=0):
        """Compares every byte with the result of the moves on the contents that fill() wrote."""
        before = [blocks_of(content(pe, which, array.shape, array.dtype), axis) for pe in range(self.pes)]
        after = before[self.me].copy()
        if mode == "move":
            for pe, block, _, _ in moves:
                if pe == self.me:
                    after[block] = 0
        for source_pe, source, pe, block in moves:
            if pe == self.me:
                after[block] = before[source_pe][source]
        self.assertEqual(blocks_of(array, axis).tobytes(), after.tobytes())


class Caches(PeTest):
    def test_have_the_sizes_of_their_shapes(self):
        one = lambda *shape: shmem_kv.zeros(shape, np.int8)
        for cache, sizes in (
            (Cache(one(5, 2, 4, 8), one(5, 2, 4, 8)), (1, 5, 2, 4, 8)),
            (Cache(one(3, 5, 2, 4, 8), one(3, 5, 2, 4, 8)), (3, 5, 2, 4, 8)),
            (Cache(one(2, 5, 2, 4, 8), format="by_layer"), (1, 5, 2, 4, 8)),
            (Cache(one(3, 2, 5, 2, 4, 8), format="by_layer"), (3, 5, 2, 4, 8)),
            (Cache(one(5, 2, 2, 4, 8), format="interleaved"), (1, 5, 2, 4, 8)),
            (Cache(one(3, 5, 2, 2, 4, 8), format="interleaved"), (3, 5, 2, 4, 8)),
            (Cache(one(5, 3, 2, 2, 4, 8), format="by_block"), (3, 5, 2, 4, 8)),
            (Cache(one(5, 4, 8), format="latent"), (1, 5, 1, 4, 8)),
            (Cache(one(3, 5, 4, 8), format="latent"), (3, 5, 1, 4, 8)),
        ):
            self.assertEqual((cache.layers, cache.blocks, cache.kv_heads, cache.page_size, cache.head_dim), sizes)
        self.assertIn("by_layer, int8, 3 layers of 5 blocks", repr(Cache(one(3, 2, 5, 2, 4, 8), format="by_layer")))

    def test_that_are_wrong_are_named(self):
        k, v = shmem_kv.zeros((5, 2, 4, 8), np.int8), shmem_kv.zeros((5, 2, 4, 8), np.int8)
        far = shmem_kv.zeros((5, 2, 4, 16), np.int8)[..., :8]
        own = np.zeros((5, 2, 4, 8), np.int8)
        fixed = k.view()
        fixed.flags.writeable = False
        freed = shmem_kv.zeros((5, 2, 4, 8), np.int8)
        shmem_kv.free(freed)
        for arguments, text in (
            ((k,), "without v, format says how"),
            ((k, None, "apart"), "format 'apart' is of k and v"),
            ((k, v, "by_layer"), "format 'by_layer' is of k alone"),
            ((k, None, "vllm"), "format is one of apart, .*, not 'vllm'"),
            ((k[0], v[0]), r"k has 3 dimensions, \(2, 4, 8\); format 'apart' is \[layers\]\[blocks\].* or \[blocks\]"),
            ((k.reshape(1, 5, 2, 4, 8), None, "by_layer"), r"has 1 in place of K and V at index 0; .*\[layers\]\[2\]"),
            ((k, v[:4]), r"v is int8 of shape \(4, 2, 4, 8\), but k is int8 of \(5, 2, 4, 8\)"),
            ((k, v.view(np.uint8)), "v is uint8 of shape"),
            ((far, far), "k is not contiguous"),
            ((k, own), "v is not in symmetric memory"),
            ((own, v), "k is not in symmetric memory"),
            ((k.tolist(), v), "v is int8|k is not in symmetric memory"),
            ((fixed, v), "k is read-only"),
            ((k, freed), "v was freed"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                Cache(*arguments)
        with self.assertRaisesRegex(ValueError, "elements of complex128; they are of 1, 2, 4 or 8 bytes"):
            Cache(shmem_kv.zeros((5, 2, 4, 8), complex), format="latent")


class Shuffles(ShuffleTest):
    def test_of_every_format_and_width(self):
        with Operator() as operator:
            for which, (format, (shape, axis)) in enumerate(LAYERED.items()):
                for dtype in (np.int8, np.uint16, np.float32, np.float64):
                    with shmem_kv.Arena() as arena:
                        arrays = [arena.empty(shape, dtype) for _ in range(2 if format == "apart" else 1)]
                        for i, array in enumerate(arrays):
                            array[:] = content(self.me, 10 * i + which, shape, dtype)
                        operator.shuffle(Plan(RING), Cache(*arrays, format=format))
                        for i, array in enumerate(arrays):
                            self.expect(array, RING, axis, which=10 * i + which)

    def test_of_chains_and_cycles_as_copy_and_as_move(self):
        moves = [(0, 1, 1, 1), (1, 1, 2, 1), (2, 1, 0, 1), (0, 5, 0, 6), (0, 6, 1, 9), (2, 3, 2, 3)]
        for mode in ("copy", "move"):
            for path in ("auto", "direct", "scratch"):
                with Operator(cores=3, path=path, staging=1 << 20) as operator, shmem_kv.Arena() as arena:
                    k, v = arena.empty((BLOCKS, *BLOCK), np.float16), arena.empty((BLOCKS, *BLOCK), np.float16)
                    k[:], v[:] = content(self.me, 0, k.shape, k.dtype), content(self.me, 1, v.shape, v.dtype)
                    operator.shuffle(Plan(moves, mode=mode), Cache(k, v))
                    self.expect(k, moves, 0, mode, 0)
                    self.expect(v, moves, 0, mode, 1)

    def test_in_two_phases(self):
        k = self.fill((BLOCKS, *BLOCK))
        v = self.fill((BLOCKS, *BLOCK), which=1)
        with Operator() as operator:
            with self.assertRaisesRegex(ValueError, "wait: no shuffle was started"):
                operator.wait()
            with self.assertRaisesRegex(ValueError, "test: no shuffle was started"):
                operator.test()
            operator.start(Plan(RING), Cache(k, v))  # the test keeps no reference to either
            while not operator.test():
                pass
            self.expect(k, RING, 0)
            operator.start(Plan([]), Cache(k, v))
            with self.assertRaisesRegex(RuntimeError, "."):
                operator.start(Plan([]), Cache(k, v))
            operator.wait()
            self.expect(v, RING, 0, which=1)
            with self.assertRaisesRegex(ValueError, "no shuffle was started"):
                operator.wait()
            operator.start(Plan([]), Cache(k, v))  # close() ends it

    def test_while_tasks_of_an_event_loop_run(self):
        k = self.fill((BLOCKS, *BLOCK))
        v = self.fill((BLOCKS, *BLOCK), which=1)
        turns = 0

        async def others(shuffling):
            nonlocal turns
            while not shuffling.done():
                turns += 1
                await asyncio.sleep(0)

        async def serve(operator):
            # This PE's loop runs while the shuffle waits for the others, which come after that.
            shuffling = asyncio.create_task(operator.shuffle_async(Plan(RING), Cache(k, v)))
            await others(shuffling)
            await shuffling
            with self.assertRaisesRegex(ValueError, "block"):
                await operator.shuffle_async(Plan([(0, BLOCKS, 1, 0)]), Cache(k, v))
            self.assertEqual(operator.stats()[:2], (1, 1))

        with Operator() as operator:
            asyncio.run(serve(operator))
        self.assertGreater(turns, 0)
        self.expect(k, RING, 0)
        self.expect(v, RING, 0, which=1)

    def test_is_counted(self):
        k = self.fill((BLOCKS, 4, 8))
        cache = Cache(k, format="latent")
        with Operator() as operator:
            self.assertEqual(operator.stats(), (0,) * 11)
            operator.shuffle(Plan([(0, 1, 1, 2), (0, 1, 2, 2), (0, 1, 0, 3), (1, 4, 0, 4)]), cache)
            sent = {0: 2, 1: 1, 2: 0}[self.me]
            self.assertEqual(operator.stats()[:4], (1, 0, sent, sent * k[0].nbytes))
            with self.assertRaises(ValueError):
                operator.shuffle(Plan([(0, BLOCKS, 1, 2)]), cache)
            operator.start(Plan([(1, 1, 2, 2)]), cache)
            operator.wait()
            sent += self.me == 1
            self.assertEqual(operator.stats()[:4], (2, 1, sent, sent * k[0].nbytes))
            stats = operator.stats()
            self.assertGreater(stats.seconds, 0)
            self.assertEqual((stats.failed_invalid + stats.failed_aborted, stats.metrics_port), (1, 0))
        with self.assertRaises(RuntimeError):
            operator.shuffle(Plan([]), cache)
        self.assertEqual(operator.stats().failures, 1)

    def test_answers_requests_for_metrics(self):
        k = self.fill((BLOCKS, 4, 8))
        try:
            operator = Operator(metrics=0)
        except OSError as error:
            self.assertEqual(error.errno, errno.ENOTSUP)
            self.skipTest(str(error))  # on all PEs
        with operator:
            operator.shuffle(Plan([(0, 1, 1, 2)]), Cache(k, format="latent"))
            port = operator.stats().metrics_port
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
                lines = page.read().decode().splitlines()
            self.assertIn(f'shmem_kv_shuffles_total{{pe="{self.me}"}} 1', lines)
            self.assertIn(f'shmem_kv_sent_blocks_total{{pe="{self.me}"}} {int(self.me == 0)}', lines)
            with self.assertRaises(ValueError):
                Operator(metrics="nowhere")  # finalize() ends it

    def test_in_a_team(self):
        team = shmem_kv.team_split_strided(shmem_kv.TEAM_WORLD, 1, 1, 2)
        k = self.fill((BLOCKS, *BLOCK))
        v = self.fill((BLOCKS, *BLOCK), which=1)
        with Operator(team) as operator:
            if team >= 0:
                operator.shuffle(Plan([(0, 3, 1, 4)]), Cache(k, v))
                shmem_kv.team_destroy(team)
            else:
                with self.assertRaisesRegex(ValueError, "not in the operator's team"):
                    operator.shuffle(Plan([]), Cache(k, v))
        self.expect(k, [(1, 3, 2, 4)], 0)

    def test_of_tensors_that_other_libraries_made_of_the_arrays(self):
        class Tensor:  # imitates a tensor library's view of an array
            def __init__(self, array):
                self.array = array
                self.__array_interface__ = array.__array_interface__

        k = self.fill((BLOCKS, *BLOCK))
        v = self.fill((BLOCKS, *BLOCK), which=1)
        with Operator() as operator:
            operator.shuffle(Plan(RING), Cache(Tensor(k), Tensor(v)))
        self.expect(k, RING, 0)


class Errors(ShuffleTest):
    def setUp(self):
        super().setUp()
        self.k = self.fill((BLOCKS, *BLOCK))
        self.v = self.fill((BLOCKS, *BLOCK), which=1)
        self.cache = Cache(self.k, self.v)

    def untouched(self):
        self.expect(self.k, [], 0)
        self.expect(self.v, [], 0, which=1)

    def test_plans_that_do_not_fit_are_refused_on_all(self):
        with Operator() as operator:
            for moves in ([(0, BLOCKS, 1, 0)], [(0, 0, 1, BLOCKS)], [(3, 0, 1, 1)], [(0, 0, 3, 1)]):
                with self.assertRaisesRegex(ValueError, "."):
                    operator.shuffle(Plan(moves), self.cache)
                self.untouched()
            operator.start(Plan([(0, BLOCKS, 1, 0)]), self.cache)
            with self.assertRaisesRegex(ValueError, "."):
                operator.wait()
            operator.shuffle(Plan(RING), self.cache)
            self.expect(self.k, RING, 0)

    def test_plans_and_caches_that_differ_are_refused_on_all(self):
        with Operator() as operator:
            with self.assertRaises((ValueError, ConnectionAbortedError)):
                operator.shuffle(Plan([(0, self.me, 1, 0)]), self.cache)
            with self.assertRaises((ValueError, ConnectionAbortedError)):
                operator.shuffle(Plan([(0, 1, 1, 0)], mode="move" if self.me == 2 else "copy"), self.cache)
            swapped = Cache(self.v, self.k) if self.me == 1 else self.cache
            with self.assertRaises((ValueError, ConnectionAbortedError)):
                operator.shuffle(Plan([(0, 1, 1, 0)]), swapped)
            self.untouched()

    def test_options_that_are_wrong_are_refused(self):
        for arguments, text in (
            ({"path": "fast"}, "path is 'auto' or 'direct' or 'scratch', not 'fast'"),
            ({"cores": -1}, "."),
            ({"cores": 2 + self.me}, "."),
            ({"team": 99}, "this PE is not in team 99"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                Operator(**arguments)

    def test_freed_arrays_and_closed_operators_are_refused(self):
        operator = Operator()
        shmem_kv.free(self.v)
        with self.assertRaisesRegex(ValueError, "shuffle: v was freed"):
            operator.shuffle(Plan([]), self.cache)
        operator.close()
        operator.close()
        self.assertTrue(operator.closed)
        for call in (lambda: operator.shuffle(Plan([]), Cache(self.k, format="latent")), operator.wait, operator.test):
            with self.assertRaisesRegex(RuntimeError, "the operator is closed"):
                call()

    def test_the_end_closes_operators_and_invalidates_caches(self):
        operator, other = Operator(), Operator()
        other.start(Plan(RING), self.cache)
        shmem_kv.finalize()
        self.assertTrue(operator.closed and other.closed)
        operator.close()
        self.expect(self.k, RING, 0)  # the shuffle had completed
        with self.assertRaisesRegex(RuntimeError, "shuffle: the library does not run"):
            operator.shuffle(Plan([]), self.cache)
        with self.assertRaisesRegex(RuntimeError, "Operator: the library does not run"):
            Operator()
        shmem_kv.init()
        with self.assertRaisesRegex(ValueError, r"shuffle: k is of before finalize\(\)"):
            operator.shuffle(Plan([]), self.cache)

    def test_an_operator_is_for_one_thread_at_a_time(self):
        # PE 0 waits in a shuffle, which the other PEs call after PE 0's second thread has been refused.
        path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"shmem_kv_test_{os.getppid()}")
        with Operator() as operator:
            if self.me == 0:
                waits = threading.Thread(target=operator.shuffle, args=(Plan(RING), self.cache))
                waits.start()
                refused = ""
                while not refused:
                    try:
                        operator.wait()
                    except ValueError:  # no shuffle was started: the thread has not called it yet
                        pass
                    except RuntimeError as error:
                        refused = str(error)
                self.assertIn("another thread uses the operator", refused)
                with self.assertRaisesRegex(RuntimeError, "finalize: 1 calls of other threads"):
                    shmem_kv.finalize()
                open(path, "w").close()
                waits.join()
                os.remove(path)
            else:
                while not os.path.exists(path):
                    pass
                operator.shuffle(Plan(RING), self.cache)
        self.expect(self.k, RING, 0)


class Reference(ShuffleTest):
    def test_copies_between_pairs(self):
        k = self.fill((BLOCKS, *BLOCK), np.int8)
        v = self.fill((BLOCKS, *BLOCK), np.int8, 1)
        table = np.array([(1, 0), (0, 1), (2, 1)], np.int64)
        mine = ([3, 4], [8, 0]) if self.me == 0 else ([], [])
        operator = KVShuffle()
        for _ in range(10):
            operator.compute(table, k, v, np.array(mine[0], np.int64), np.array(mine[1], np.int64))
        shmem_kv.barrier_all()
        moves = [(0, 3, 1, 8), (0, 4, 1, 0)]
        self.expect(k, moves, 0)
        self.expect(v, moves, 0, which=1)
        with self.assertRaisesRegex(ValueError, r"k_cache has the shape \(2, 4, 8\)"):
            operator.compute(table, k[0], v[0], [], [])
        operator.close()

    def test_tells_the_partner_what_is_wrong(self):
        k, v = self.fill((BLOCKS, *BLOCK)), self.fill((BLOCKS, *BLOCK), which=1)
        table = [(1, 0), (0, 1), (2, 1)]
        operator = KVShuffle()
        if self.me == 0:
            with self.assertRaisesRegex(ValueError, "."):
                operator.compute(table, k, v, [0], [BLOCKS])
        elif self.me == 1:
            with self.assertRaises((ConnectionAbortedError, ValueError)):
                operator.compute(table, k, v, [], [])
        else:
            operator.compute(table, k, v, [], [])
        operator.close()
        self.expect(k, [], 0)


if __name__ == "__main__":
    main()

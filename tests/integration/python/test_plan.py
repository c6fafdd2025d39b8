# SPDX-License-Identifier: Apache-2.0
"""Plans, which need neither a launcher nor another PE."""

import errno
import unittest

import numpy as np
import shmem_kv
from shmem_kv import Plan, Sequence


class Moves(unittest.TestCase):
    def test_are_sorted_and_unique(self):
        rows = [(1, 5, 0, 2), (0, 3, 1, 7), (1, 5, 0, 2), (0, 3, 2, 7)]
        for moves in (rows, iter(rows), np.array(rows), np.array(rows, np.uint8), np.array(rows, np.int32)[::-1]):
            plan = Plan(moves)
            self.assertEqual(plan.moves.tolist(), [[0, 3, 1, 7], [0, 3, 2, 7], [1, 5, 0, 2]])
            self.assertEqual((plan.moves.dtype, len(plan)), (np.int64, 3))

    def test_are_read_only_and_outlive_their_plan(self):
        moves = Plan([(0, 3, 1, 7)]).moves
        with self.assertRaises(ValueError):
            moves[0, 0] = 1
        self.assertEqual(moves.tolist(), [[0, 3, 1, 7]])

    def test_may_be_none(self):
        for nothing in ([], (), np.zeros((0, 4), np.int64), iter(())):
            self.assertEqual(Plan(nothing).moves.shape, (0, 4))

    def test_have_a_digest(self):
        plan = Plan([(0, 3, 1, 7), (1, 5, 0, 2)])
        self.assertEqual(plan.digest, Plan([(1, 5, 0, 2), (0, 3, 1, 7)]).digest)
        self.assertNotEqual(plan.digest, Plan([(0, 3, 1, 7), (1, 5, 0, 2)], mode="move").digest)
        self.assertNotEqual(plan.digest, Plan([(0, 3, 1, 7)]).digest)
        self.assertIn(f"{plan.digest:016x}", repr(plan))

    def test_that_are_wrong_are_refused(self):
        with self.assertRaisesRegex(ValueError, r"rows of 4 numbers .* \(2, 3\)"):
            Plan([(1, 2, 3), (4, 5, 6)])
        with self.assertRaisesRegex(TypeError, "whole numbers"):
            Plan([(0.5, 2, 3, 4)])
        with self.assertRaisesRegex(TypeError, "whole numbers"):
            Plan([(1 << 70, 2, 3, 4)])
        with self.assertRaisesRegex(ValueError, "mode is 'copy' or 'move', not 'swap'"):
            Plan([], mode="swap")
        for moves, mode in (
            ([(0, 1, 1, 7), (0, 2, 1, 7)], "copy"),  # two sources
            ([(0, -1, 1, 7)], "copy"),
            ([(0, 1, -1, 7)], "copy"),
            ([(0, 1, 1, 7), (0, 1, 2, 7)], "move"),  # two destinations
        ):
            with self.assertRaisesRegex(ValueError, "."):
                Plan(moves, mode=mode)


class Pairs(unittest.TestCase):
    def test_have_the_moves_of_this_pe(self):
        table = [(1, 0), (0, 1)]
        plan = Plan.pairs(table, [3, 4], [0, 9], me=0)
        self.assertEqual(plan.moves.tolist(), [[0, 3, 1, 0], [0, 4, 1, 9]])
        receiver = Plan.pairs(np.array(table).ravel(), me=1)
        self.assertEqual(receiver.moves.shape, (0, 4))
        self.assertEqual(plan.digest, receiver.digest)

    def test_that_are_wrong_are_refused(self):
        with self.assertRaisesRegex(ValueError, r"pair_table has the shape \(1, 3\)"):
            Plan.pairs([(1, 2, 3)], me=0)
        with self.assertRaisesRegex(ValueError, "src_blocks are 2, but dst_blocks 1"):
            Plan.pairs([(1, 0), (0, 1)], [1, 2], [3], me=0)
        for table in ([(1, 0), (0, 0)], [(1, 0), (2, 1), (1, 1)]):
            wrong = Plan.pairs(table, [1], [3], me=0)  # not an exception: shuffle() tells the partner
            with self.assertRaisesRegex(ValueError, "global_shuffle_table"):
                len(wrong)
            self.assertIn("that is wrong", repr(wrong))
        with self.assertRaisesRegex(RuntimeError, r"my_pe: the library does not run"):
            Plan.pairs([(1, 0), (0, 1)], [1], [3])


class Balance(unittest.TestCase):
    SEQUENCES = [Sequence(0, 64, [0, 1, 2, 3]), Sequence(0, 40, [4, 5, 6]), (1, 8, [0])]

    def balance(self, **options):
        return Plan.balance(self.SEQUENCES, **({"blocks": 16, "page_size": 16, "n_pes": 2} | options))

    def test_tells_where_sequences_are_placed(self):
        for planner in ("pair", "balanced"):
            plan = self.balance(planner=planner)
            self.assertEqual(len(plan.placements), 3)
            moved = {tuple(move) for move in plan.moves.tolist()}
            for (pe, _, blocks, *_), placement in zip(self.SEQUENCES, plan.placements):
                self.assertEqual(placement.blocks.dtype, np.int64)
                if placement.pe == pe:
                    self.assertEqual(placement.blocks.tolist(), blocks)
                else:
                    for source, destination in zip(blocks, placement.blocks.tolist()):
                        self.assertIn((pe, source, placement.pe, destination), moved)
            self.assertEqual([placement.pe for placement in plan.placements], [0, 1, 1])
            self.assertEqual(plan.digest, self.balance(planner=planner).digest)

    def test_does_not_send_blocks_that_are_already_there(self):
        sequences = [
            Sequence(0, 64, [0, 1, 2, 3], [9, 8, 7, 6]),
            Sequence(0, 32, [4, 5], [19, 18]),
            Sequence(1, 32, [2, 7], np.array([19, 18], np.uint64)),
        ]
        plan = Plan.balance(sequences, blocks=16, page_size=16, n_pes=2)
        self.assertEqual(len(plan), 0)
        self.assertEqual((plan.placements[1].pe, plan.placements[1].blocks.tolist()), (1, [2, 7]))

    def test_is_missing_in_other_plans(self):
        self.assertEqual(Plan([]).placements, [])

    def test_refuses_invalid_arguments(self):
        with self.assertRaisesRegex(ValueError, "planner is 'pair' or 'balanced', not 'best'"):
            self.balance(planner="best")
        with self.assertRaisesRegex(RuntimeError, "n_pes: the library does not run"):
            self.balance(n_pes=None)
        with self.assertRaisesRegex(TypeError, "hashes are whole numbers"):
            Plan.balance([(0, 16, [0], ["a"])], blocks=16, page_size=16, n_pes=2)
        with self.assertRaisesRegex(ValueError, "no sequences"):
            Plan.balance([], blocks=16, page_size=16, n_pes=2)
        with self.assertRaises(OSError) as full:
            sequences = [(0, 64, range(4)), (0, 40, [4, 5, 6]), (1, 8, [0, 1, 2, 3, 4])]
            Plan.balance(sequences, blocks=7, page_size=16, n_pes=2, planner="pair")
        self.assertEqual(full.exception.errno, errno.ENOBUFS)
        for options in ({"page_size": 0}, {"blocks": 2}, {"n_pes": 1}):
            with self.assertRaisesRegex(ValueError, "."):
                self.balance(**options)


if __name__ == "__main__":
    unittest.main(verbosity=0)

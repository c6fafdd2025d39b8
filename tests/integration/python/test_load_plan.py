# SPDX-License-Identifier: Apache-2.0
"""Plans for exchanges, and members that carry them out."""

import unittest

import numpy as np
from members import ExchangeTest
from shmem_kv import Load, LoadMove, Share, plan_loads


class LoadPlans(ExchangeTest):
    def test_balance_whole_loads(self):
        plan = plan_loads([7, 3, 5], [(7, 40, ["a0", "a1"]), (7, 30, [b"b0"]), Load(7, 20, ("c0", "c1"))])
        self.assertEqual(plan.owners, [7, 3, 5])
        moves = [LoadMove(7, 3, 1, b"b0"), LoadMove(7, 5, 2, b"c0"), LoadMove(7, 5, 2, b"c1")]
        self.assertEqual(plan.moves, moves)
        self.assertEqual(plan.moves_to(5), moves[1:])
        self.assertEqual(plan.moves_to(7), [])

    def test_know_weights_room_and_tolerance(self):
        loads = [(1, 10, [str(i)]) for i in range(8)]
        self.assertEqual(plan_loads([Share(1), Share(2, weight=3)], loads).owners.count(2), 6)
        self.assertEqual(plan_loads([Share(1), Share(2, 3, room=2)], loads).owners.count(2), 2)
        self.assertEqual(plan_loads([Share(1, 0), Share(2)], loads).owners, [2] * 8)
        self.assertEqual(plan_loads([1, 2], [(1, 11, ["a"]), (1, 1, ["b"]), (2, 10, ["c"])], tolerance=0.2).moves, [])
        self.assertEqual(plan_loads([1, 2], []), ([], []))
        large = (1 << 64) - 1
        self.assertEqual(plan_loads([large, 2], [(large, 1, ["a"]), (large, 1, ["b"])]).owners.count(large), 1)

    def test_that_make_no_sense_are_refused(self):
        for members, loads, options, reason in (
            ([1], [(2, 1, ["a"])], {}, "load 0 is of 2"),
            ([], [], {}, "no member has a weight"),
            ([1, 1], [], {}, "members 0 and 1 are both 1"),
            ([Share(1, 1001)], [], {}, "weight 1001"),
            ([1], [(1, 1, [])], {}, "load 0 has no blocks"),
            ([1], [(1, 1, [b""])], {}, "key 0 of load 0 has 0 bytes"),
            ([1], [(1, 1, ["a"])], {"tolerance": 2}, "tolerance of 2"),
        ):
            with self.subTest(reason=reason), self.assertRaisesRegex(ValueError, reason):
                plan_loads(members, loads, **options)
        with self.assertRaisesRegex(ValueError, "0 or more"):
            plan_loads([1], [(1, -1, ["a"])])
        with self.assertRaises(TypeError):
            plan_loads([1], [(1, 0.5, ["a"])])

    def test_are_carried_out_by_pull_publish_and_withdraw(self):
        router, a, b = self.join(), self.join(), self.join()
        self.wait_for(lambda: all(len(one.members()) == 2 for one in (router, a, b)))
        blocks = {one: one.allocate(1 << 16).array((16, 4096)) for one in (a, b)}
        keys = [f"s{i}" for i in range(4)]
        for i, key in enumerate(keys):
            blocks[a][i] = i + 1
            a.publish(key, blocks[a][i])
        # The router: loads from the directories.
        seats = {member.id: member.seat for member in router.members()}
        loads = [(member, block.bytes, [block.key]) for member, seat in seats.items() for block in router.blocks_of(seat)]
        self.assertEqual(len(loads), 4)
        plan = plan_loads(seats, loads)
        to = b.stats().id
        moves = plan.moves_to(to)
        self.assertEqual((len(plan.moves), len(moves)), (2, 2))
        # The receiver replicates.
        for slot, move in enumerate(moves):
            b.pull(b.find(move.key), blocks[b][slot])
            b.publish(move.key, blocks[b][slot])
            self.assertTrue((blocks[b][slot] == keys.index(move.key.decode()) + 1).all())
        # The owner evicts what another member has.
        given = [move.key for move in moves]
        self.assertTrue(a.find(given).hits().all())
        a.withdraw(given)
        self.assertEqual((a.stats().blocks, b.stats().blocks), (2, 2))
        self.assertEqual({block.member for block in router.find(given)}, {to})
        to_read = np.empty(4096, np.uint8)
        router.pull(router.find(given[0]), to_read)


if __name__ == "__main__":
    unittest.main()

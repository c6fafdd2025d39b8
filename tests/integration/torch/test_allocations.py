# SPDX-License-Identifier: Apache-2.0
"""A small collective call allocates nothing but the work that torch gets: test_allocations.py COUNTED_NEW_LIBRARY."""

import ctypes
import os
import sys
import unittest

if "LD_PRELOAD" not in os.environ:
    os.environ["LD_PRELOAD"] = sys.argv[1]
    os.execv(sys.executable, [sys.executable, *sys.argv])

import torch
from ranks import RanksTest, dist

CALLS = 20


def allocations_of(call):
    library = ctypes.CDLL(None)
    call()  # the first call starts the queue's thread
    dist.barrier()
    library.begin_to_count()
    for _ in range(CALLS):
        call()
    return library.counted()


class Allocations(RanksTest):
    def test_a_small_call_allocates_its_work_only(self):
        def body(rank, size):
            tensor = torch.ones(8)
            parts = [torch.ones(8) for _ in range(size)]
            calls = {
                "all_reduce": lambda: dist.all_reduce(tensor),
                "reduce": lambda: dist.reduce(tensor, 0),
                "broadcast": lambda: dist.broadcast(tensor, 1),
                "all_gather": lambda: dist.all_gather(parts, tensor),
                "barrier": dist.barrier,
            }
            return {name: allocations_of(call) for name, call in calls.items()}

        for counted in self.on_ranks(2, body):
            self.assertEqual(counted, dict.fromkeys(counted, CALLS))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a serving engine do before each step: agree how many tokens the largest batch has, and whether all
are idle. A few numbers, hundreds of times a second: the latency of the backend is all that counts.

python3 step_sync.py [RANKS], or torchrun step_sync.py. It makes the same calls with gloo afterwards, and prints both
times.
"""

import statistics
import time

import torch
import torch.distributed as dist
from launch import start

STEPS = 200

# One tensor that outlives the groups. A thread of gloo that drops the last reference to a tensor takes Python's lock, with
# which PyTorch 2.6 waits for that thread when the group ends: both would wait for ever.
AGREED = torch.zeros(2, dtype=torch.int64)


def tokens_of(step, rank):
    """Of the batch of this rank; in every fifth step none has work."""
    return 0 if step % 5 == 0 else (step * 31 + rank * 17) % 100 + 1


def synchronise(rank, size, group):
    """The microseconds of each step's agreement."""
    times = []
    for step in range(STEPS):
        mine = tokens_of(step, rank)
        AGREED[0], AGREED[1] = mine, mine > 0
        begin = time.perf_counter()
        dist.all_reduce(AGREED, dist.ReduceOp.MAX, group=group)
        times.append((time.perf_counter() - begin) * 1e6)
        most = max(tokens_of(step, other) for other in range(size))
        assert AGREED.tolist() == [most, int(most > 0)], f"step {step}: {AGREED.tolist()}"
    return times


def main(rank, size):
    groups = {dist.get_backend(): None, "gloo": dist.new_group(backend="gloo")}
    medians = {name: statistics.median(synchronise(rank, size, group)) for name, group in groups.items()}
    if rank == 0:
        figures = ", ".join(f"{median:.1f} us with {name}" for name, median in medians.items())
        ranks = "1 rank" if size == 1 else f"{size} ranks"
        print(f"{STEPS} steps of {ranks}; the median agreement takes {figures}")
        print("step_sync: correct", flush=True)
    dist.barrier()


if __name__ == "__main__":
    start(main)

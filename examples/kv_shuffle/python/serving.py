#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small serving loop: sequences arrive unevenly, and in each step their KV blocks move to PEs with less work.

oshrun -n 4 python3 serving.py [STEPS]

Each PE keeps the cache of the sequences that it decodes. All PEs know all sequences (from a scheduler; here they draw
the same random numbers), so that each makes the same plan without asking the others. Every block is filled with numbers
that only its sequence has, and is checked wherever it has moved.
"""

import sys
from dataclasses import dataclass, field

import numpy as np
import shmem_kv

LAYERS, BLOCKS, KV_HEADS, PAGE_SIZE, HEAD_DIM = 4, 64, 2, 16, 32


@dataclass
class Request:
    number: int
    pe: int
    tokens: int
    blocks: list[int] = field(default_factory=list)


class Scheduler:
    """The PE and the blocks of each sequence, the same on all PEs."""

    def __init__(self, pes: int) -> None:
        self.random = np.random.default_rng(1)
        self.free = [set(range(BLOCKS)) for _ in range(pes)]
        self.requests: list[Request] = []

    def admit(self) -> Request | None:
        """Adds a sequence, more often on PEs with small numbers. Returns None if its PE has no room."""
        pe = int(self.random.integers(len(self.free)) * self.random.random())
        tokens = int(self.random.integers(16, 129))
        count = -(-tokens // PAGE_SIZE)
        if count > len(self.free[pe]):
            return None
        request = Request(self.random.integers(1, 1 << 15), pe, tokens, sorted(self.free[pe])[:count])
        self.free[pe] -= set(request.blocks)
        self.requests.append(request)
        return request

    def load(self) -> list[int]:
        return [sum(r.tokens for r in self.requests if r.pe == pe) for pe in range(len(self.free))]

    def plan(self) -> shmem_kv.Plan:
        return shmem_kv.Plan.balance(
            [(r.pe, r.tokens, r.blocks) for r in self.requests],
            blocks=BLOCKS,
            page_size=PAGE_SIZE,
            planner="balanced",
            mode="move",
        )

    def moved(self, plan: shmem_kv.Plan) -> None:
        for request, placement in zip(self.requests, plan.placements):
            self.free[request.pe] |= set(request.blocks)
            request.pe, request.blocks = placement.pe, placement.blocks.tolist()
        for request in self.requests:
            self.free[request.pe] -= set(request.blocks)


def block_of(request: Request, index: int) -> np.ndarray:
    """K and V of all layers, as the model would have computed them for a page of this sequence."""
    numbers = np.random.default_rng([request.number, index])
    return numbers.integers(1, 1 << 15, (LAYERS, 2, KV_HEADS, PAGE_SIZE, HEAD_DIM), np.uint16)


def serve(steps: int) -> int:
    me, pes = shmem_kv.my_pe(), shmem_kv.n_pes()
    scheduler = Scheduler(pes)
    wrong = 0
    with shmem_kv.Arena() as arena, shmem_kv.Operator() as operator:
        # bfloat16, as [layers][2][blocks][kv_heads][page_size][head_dim]
        kv = arena.zeros((LAYERS, 2, BLOCKS, KV_HEADS, PAGE_SIZE, HEAD_DIM), np.uint16)
        cache = shmem_kv.Cache(kv, format="by_layer")
        for step in range(steps):
            for _ in range(2 * pes):
                request = scheduler.admit()
                if request is not None and request.pe == me:
                    for index, block in enumerate(request.blocks):
                        kv[:, :, block] = block_of(request, index)
            before = scheduler.load()
            plan = scheduler.plan()
            operator.start(plan, cache)
            # Here the model would decode sequences whose blocks the plan does not name.
            operator.wait()
            scheduler.moved(plan)
            for request in scheduler.requests:
                if request.pe == me:
                    for index, block in enumerate(request.blocks):
                        wrong += not np.array_equal(kv[:, :, block], block_of(request, index))
            if me == 0:
                print(f"step {step}: tokens {before} -> {scheduler.load()}, {len(plan)} blocks moved", flush=True)
            # Some sequences end.
            for request in scheduler.requests[:: step % 2 + 2]:
                scheduler.free[request.pe] |= set(request.blocks)
                scheduler.requests.remove(request)
            shmem_kv.barrier_all()
    return wrong


def main() -> int:
    if len(sys.argv) > 2 or not all(argument.isdigit() for argument in sys.argv[1:]):
        print(__doc__.splitlines()[2], file=sys.stderr)
        return 2
    with shmem_kv.init():
        me = shmem_kv.my_pe()
        wrong = serve(int(sys.argv[1]) if len(sys.argv) == 2 else 5)
    print(f"PE {me}: {wrong} blocks are wrong" if wrong else f"PE {me}: every block is correct")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inference with the weights spread over the ranks (tensor parallelism): each rank has some columns of the first matrix
and the same rows of the second, and the ranks add up what they get. The sum is made in symmetric memory, where nothing
is copied to the library.

python3 inference.py [RANKS [BACKEND]], or torchrun inference.py.
"""

import time

import torch
import torch.distributed as dist
from launch import start

TOKENS, WIDTH, INNER, BATCH, STEPS = 256, 512, 2048, 8, 50


def weights():
    """All of the model: each rank draws the same, and keeps its part."""
    random = torch.Generator().manual_seed(1)
    embedding = torch.randn(TOKENS, WIDTH, generator=random)
    up = torch.randn(WIDTH, INNER, generator=random) / WIDTH**0.5
    down = torch.randn(INNER, WIDTH, generator=random) / INNER**0.5
    return embedding, up, down


def generate(embedding, layer):
    """Each token of a batch from the one before; returns what went into the layer, and what came out, at each step."""
    tokens, steps = torch.arange(BATCH), []
    with torch.inference_mode():
        for _ in range(STEPS):
            hidden = layer(embedding[tokens])
            steps.append((tokens, hidden.clone()))
            tokens = (hidden @ embedding.t()).argmax(1)
    return steps


def main(rank, size):
    embedding, up, down = weights()
    part = slice(rank * INNER // size, (rank + 1) * INNER // size)
    mine_up, mine_down = up[:, part].contiguous(), down[part].contiguous()
    if dist.get_backend() == "shmem":
        import shmem_torch

        summed = shmem_torch.empty((BATCH, WIDTH), torch.float32)
    else:
        summed = torch.empty(BATCH, WIDTH)

    def parallel(hidden):
        torch.matmul((hidden @ mine_up).relu(), mine_down, out=summed)
        dist.all_reduce(summed)  # in place
        return summed

    begin = time.perf_counter()
    steps = generate(embedding, parallel)
    seconds = time.perf_counter() - begin
    for tokens, hidden in steps:  # as one rank alone
        alone = (embedding[tokens] @ up).relu() @ down
        assert torch.allclose(hidden, alone, rtol=1e-3, atol=1e-3), "the ranks get another result than one alone"
    if rank == 0:
        count = BATCH * STEPS
        ranks = "1 rank" if size == 1 else f"{size} ranks"
        print(f"{count} tokens on {ranks} with {dist.get_backend()}, {count / seconds:.0f} a second")
        if dist.get_backend() == "shmem":
            print(f"{shmem_torch.statistics().direct_calls} of {STEPS} sums were made without a copy")
        print("inference: correct", flush=True)
    dist.barrier()


if __name__ == "__main__":
    start(main)

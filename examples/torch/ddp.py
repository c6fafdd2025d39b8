#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training with DistributedDataParallel over the backend "shmem": each rank has its own data, all have the same model.

python3 ddp.py [RANKS [BACKEND]], or torchrun ddp.py. What differs from a program for gloo is the name of the backend,
in launch.py.
"""

import time

import torch
import torch.distributed as dist
from launch import start

STEPS = 300


def batches(rank):
    """The mean of 64 numbers is what the model shall learn."""
    random = torch.Generator().manual_seed(rank)
    for _ in range(STEPS):
        data = torch.randn(32, 64, generator=random)
        yield data, data.mean(1, keepdim=True)


def train(rank, size):
    torch.manual_seed(rank)  # DDP gives all ranks the model of rank 0
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    begin = time.perf_counter()
    for data, target in batches(rank):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), target)
        loss.backward()  # and the sum over the ranks
        optimizer.step()
        losses.append(loss.item())
    seconds = time.perf_counter() - begin
    weights = [torch.empty(1, 64) for _ in range(size)]
    dist.all_gather(weights, model.module.weight.detach())
    assert all(torch.equal(one, weights[0]) for one in weights), "the ranks have different models"
    assert losses[-1] < 0.01 * losses[0], f"loss {losses[0]} -> {losses[-1]}"
    if rank == 0:
        ranks = "1 rank" if size == 1 else f"{size} ranks"
        print(f"{STEPS} steps on {ranks} with {dist.get_backend()}, {STEPS / seconds:.0f} a second")
        print(f"loss {losses[0]:.3g} -> {losses[-1]:.3g}, and each rank has the same model")
        print("ddp: correct", flush=True)


if __name__ == "__main__":
    start(train)

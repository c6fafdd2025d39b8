#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A parameter server: rank 0 has the model, the other ranks send it gradients whenever they have some, and get the
model back. Messages in symmetric memory are copied once, by their receiver.

python3 parameter_server.py [RANKS [BACKEND]], or torchrun parameter_server.py.
"""

import time

import torch
import torch.distributed as dist
from launch import start

STEPS = 40  # of each worker
SHAPE = (64, 1024)


def room():
    """A message. Collective, since the memory of all ranks is in it."""
    if dist.get_backend() != "shmem":
        return torch.zeros(SHAPE)
    import shmem_torch

    return shmem_torch.empty(SHAPE, torch.float32)


def answer(size):
    """What the model shall learn; the workers have it only through their data."""
    return torch.randn(SHAPE, generator=torch.Generator().manual_seed(size))


def serve(weights, gradient, size):
    for _ in range(STEPS * (size - 1)):
        worker = dist.recv(gradient)  # of any rank
        weights -= 0.3 * gradient
        dist.send(weights, worker)


def work(weights, gradient, rank, size):
    random, wanted = torch.Generator().manual_seed(rank), answer(size)
    for _ in range(STEPS):
        data = torch.randn(256, SHAPE[0], generator=random)
        target = data @ wanted
        torch.matmul(data.t(), data @ weights - target, out=gradient)
        gradient /= len(data)
        dist.send(gradient, 0)
        dist.recv(weights, 0)


def main(rank, size):
    assert size > 1, "a server and at least one worker"
    weights, gradient = room(), room()
    dist.barrier()
    begin = time.perf_counter()
    serve(weights, gradient, size) if rank == 0 else work(weights, gradient, rank, size)
    seconds = time.perf_counter() - begin
    if rank == 0:
        count = STEPS * (size - 1)
        error = (weights - answer(size)).abs().max().item()
        print(f"{count} gradients with {dist.get_backend()}, workers: {size - 1}, {count / seconds:.0f} a second")
        assert error < 0.01, f"the model is off by {error}"
        print(f"the model is off by {error:.2g}")
        print("parameter_server: correct", flush=True)
    dist.barrier()


if __name__ == "__main__":
    start(main)

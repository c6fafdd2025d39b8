# SPDX-License-Identifier: Apache-2.0
"""Ranks that take themselves to be on several nodes: the collective calls, and what happens when a rank dies."""

import os
import signal
import sys
import time
import unittest

import torch
from ranks import RanksTest, dist

import shmem_torch


def elsewhere(body):
    """`body` in a group of ranks on two nodes, in place of this rank's group."""

    def on_nodes(rank, size):
        os.environ["SHMEM_HOST_ID"] = ("kiwi", "lemon")[rank % 2]
        return body(dist.new_group(list(range(size))), rank, size)

    return on_nodes


def here(body):
    return lambda rank, size: body(dist.new_group(list(range(size))), rank, size)


def part(rank, count, dtype=torch.float32):
    return ((torch.arange(count) + rank) % 7 + 1).to(dtype)


def collectives(group, rank, size):
    for count in (3, 5000, 300_000):
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            total = sum(part(i, count, torch.int64) for i in range(size)).to(dtype)
            tensor = part(rank, count, dtype)
            dist.all_reduce(tensor, group=group)
            assert torch.equal(tensor, total)
            tensor = part(rank, count, dtype)
            dist.broadcast(tensor, size - 1, group=group)
            assert torch.equal(tensor, part(size - 1, count, dtype))
            outputs = [torch.zeros(count, dtype=dtype) for _ in range(size)]
            dist.all_gather(outputs, part(rank, count, dtype), group=group)
            assert all(torch.equal(outputs[i], part(i, count, dtype)) for i in range(size))
            output = torch.zeros(count, dtype=dtype)
            dist.reduce_scatter(output, [part(rank + i, count, dtype) for i in range(size)], group=group)
            assert torch.equal(output, sum(part(i + rank, count, torch.int64) for i in range(size)).to(dtype))
            tensor = torch.cat([part(10 * rank + i, count, dtype) for i in range(size)])
            dist.all_to_all_single(tensor, tensor.clone(), group=group)
            assert torch.equal(tensor, torch.cat([part(10 * i + rank, count, dtype) for i in range(size)]))
    mean = torch.full((1000,), float(rank))
    dist.all_reduce(mean, dist.ReduceOp.AVG, group=group)
    assert (mean == (size - 1) / 2).all()
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank}, group=group)
    assert objects == [{"rank": i} for i in range(size)]
    dist.barrier(group)
    got = [torch.zeros(count) for count in (1, 100_000)]
    works = [dist.irecv(one, (rank - 1) % size, group=group, tag=one.numel()) for one in got]
    works += [dist.isend(part(rank, one.numel()), (rank + 1) % size, group=group, tag=one.numel()) for one in got]
    for work in works:
        work.wait()
    assert all(torch.equal(one, part((rank - 1) % size, one.numel())) for one in got)
    if rank == 0:
        sources = set()
        for _ in range(size - 1):  # from any
            one = torch.zeros(1)
            sources.add((dist.recv(one, group=group), int(one)))
        assert sources == {(i, i) for i in range(1, size)}, sources
    else:
        dist.send(torch.full((1,), float(rank)), 0, group=group)
    tensor = shmem_torch.empty(100_000, group=group)
    tensor.copy_(part(rank, 100_000))
    dist.all_reduce(tensor, group=group)
    assert torch.equal(tensor, sum(part(i, 100_000) for i in range(size)))


def training(group, rank, size):
    torch.manual_seed(3)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 1), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for _ in range(30):
        data = torch.randn(16, 64)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), data.mean(1, keepdim=True))
        loss.backward()
        optimizer.step()
    return loss.item(), [one.detach().tolist() for one in model.parameters()]


def dying(group, rank, size):
    dist.barrier(group)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    texts = []
    for _ in range(2):
        try:
            dist.all_reduce(torch.zeros(1_000_000), group=group)
            texts.append("nothing was raised")
        except RuntimeError as error:
            texts.append(str(error))
    return texts


def ending_while_a_tensor_is_let_go(group, rank, size):
    """The message ends, and its tensor, which only the group still has, while this thread keeps Python's lock."""
    dist.barrier(group)
    if rank == 1:
        time.sleep(0.3)
        dist.send(torch.zeros(4), 0, group=group)
        time.sleep(1)
        return
    dist.irecv(torch.zeros(4), 1, group=group)
    sys.setswitchinterval(1000)
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        pass
    dist.destroy_process_group(group)
    sys.setswitchinterval(0.005)


class Nodes(RanksTest):
    def test_collectives(self):
        self.on_ranks(3, elsewhere(collectives))

    def test_training(self):
        results = self.on_ranks(2, elsewhere(training))
        self.assertLess(results[0][0], 0.2)
        self.assertEqual(results[0][1], results[1][1])

    def test_a_rank_that_dies_is_named(self):
        results = self.on_ranks(3, elsewhere(dying), dead=[1])
        for rank in (0, 2):
            for text in results[rank]:
                self.assertRegex(text, r"rank 1 \(on .*\).*lost")

    def test_a_group_ends_while_a_tensor_is_let_go(self):
        for place in (elsewhere, here):
            self.on_ranks(2, place(ending_while_a_tensor_is_let_go))


if __name__ == "__main__":
    unittest.main(verbosity=0)

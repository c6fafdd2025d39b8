# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel trains a small model to the same losses as with gloo."""

import tempfile
import unittest

import torch
from ranks import RanksTest, dist
from torch.nn.parallel import DistributedDataParallel


def train(backend):
    def body(rank, size):
        if backend == "gloo":
            dist.destroy_process_group()
            store = f"file://{FOLDER}/gloo"
            dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(16, 300), torch.nn.Tanh(), torch.nn.Linear(300, 1))
        model = DistributedDataParallel(model, bucket_cap_mb=0.01, find_unused_parameters=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        losses = []
        for step in range(6):
            torch.manual_seed(100 * step + rank)
            data = torch.randn(8, 16)
            loss = ((model(data) - data.sum(1, keepdim=True)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            dist.all_reduce(loss := loss.detach())
            losses.append(loss.item())
        return losses

    return body


class Training(RanksTest):
    def test_losses_are_those_of_gloo(self):
        global FOLDER
        for size in (2, 4):
            with tempfile.TemporaryDirectory() as FOLDER:
                with_gloo = self.on_ranks(size, train("gloo"))
            with_shmem = self.on_ranks(size, train("shmem"))
            for rank in range(size):
                self.assertEqual(len(with_shmem[rank]), 6)
                torch.testing.assert_close(torch.tensor(with_shmem[rank]), torch.tensor(with_gloo[rank]))


if __name__ == "__main__":
    unittest.main(verbosity=0)

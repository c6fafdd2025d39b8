# SPDX-License-Identifier: Apache-2.0
"""The loops in docs/python.md run as they are printed, and say what they do."""

import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import torch
from ranks import RanksTest, dist, torch_version

import shmem_torch

DOCUMENT = pathlib.Path(__file__).parents[3] / "docs" / "python.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


def block_with(*words):
    found = [one for one in BLOCKS if all(word in one for word in words)]
    assert len(found) == 1, f"{len(found)} examples with {words}"
    return found[0]


def lines_of(block):
    return [line for line in block.splitlines() if line.strip()]


def run(block, folder, names):
    """Runs an example in place of this rank's group."""

    def body(rank, size):
        dist.destroy_process_group()
        start = dist.init_process_group
        dist.init_process_group = functools.partial(
            start, init_method=f"file://{folder}/example", rank=rank, world_size=size
        )
        space = names(rank, size)
        exec(compile(block, str(DOCUMENT), "exec"), space)
        dist.init_process_group = start
        return space.get("results")

    return body


def training(rank, size):
    torch.manual_seed(rank)
    batches = []
    for _ in range(30):
        data = torch.randn(16, 64)
        batches.append((data, data.mean(1, keepdim=True)))
    return Space(batches=batches, results=None)


class Space(dict):
    """The names of an example; `results` is what it has computed."""

    def get(self, name, default=None):
        if name == "results" and "model" in self:
            data, target = self["batches"][0]
            loss = torch.nn.functional.mse_loss(self["model"](data), target).item()
            return loss, [one.detach().tolist() for one in self["model"].parameters()]
        if name == "results" and "memory" in self:
            return self["tensor"][:2].tolist()
        if name == "results" and "window" in self:
            dist.barrier()
            result = self["tensor"].tolist(), self["there"].tolist()
            dist.barrier()  # a rank's memory goes with its tensor
            return result
        return super().get(name, default)


def inference(rank, size):
    torch.manual_seed(7)
    weights = torch.randn(4096, 256, dtype=torch.float32).bfloat16()
    requests = [torch.randn(8, 256).bfloat16() for _ in range(3)]
    part = slice(rank * 256 // size, (rank + 1) * 256 // size)
    replies = []

    def reply(hidden):
        replies.append((hidden.float().sum().item(), shmem_torch.statistics().direct_calls))

    return Space(weight=weights[:, part], requests=[one[:, part] for one in requests], reply=reply, results=replies)


class Documents(RanksTest):
    def test_the_training_loop(self):
        block = block_with("DistributedDataParallel")
        self.assertEqual(len(lines_of(block)), 10)
        with tempfile.TemporaryDirectory() as folder:
            results = self.on_ranks(2, run(block, folder, training))
        self.assertLess(results[0][0], 0.05)
        self.assertEqual(results[0][1], results[1][1])

    def test_the_inference_loop(self):
        block = block_with("shmem_torch.empty", "inference_mode")
        self.assertEqual(len(lines_of(block)), 10)
        with tempfile.TemporaryDirectory() as folder:
            results = self.on_ranks(2, run(block, folder, inference))
        self.assertEqual(results[0], results[1])
        self.assertEqual([direct for _, direct in results[0]], [1, 2, 3])

    @unittest.skipUnless(shmem_torch.HAS_SYMMETRIC_MEMORY, "this PyTorch has no symmetric memory that is supported")
    def test_the_symmetric_memory_of_pytorch(self):
        with tempfile.TemporaryDirectory() as folder:
            results = self.on_ranks(2, run(block_with("rendezvous"), folder, lambda rank, size: Space(results=None)))
        self.assertEqual(results, [[7, 0], [7, 1]])

    @unittest.skipUnless(torch_version() >= (2, 14), "this PyTorch has no windows")
    def test_the_window(self):
        with tempfile.TemporaryDirectory() as folder:
            results = self.on_ranks(2, run(block_with("_new_window"), folder, lambda rank, size: Space(results=None)))
        self.assertEqual(results, [([0, 11], [10, 0]), ([10, 0], [0, 11])])

    def test_the_other_examples(self):
        oshrun = os.path.join(os.environ["GBA_BIN"], "oshrun")
        for words in (("by_layer", "start(), test()"), ("by_layer", "memfd_create"), ("from_dlpack",), ("shuffle_async",)):
            job = subprocess.run(
                [oshrun, "-n", "2", "--gba", "off", "--timeout", "300", sys.executable, "-c", block_with(*words)],
                capture_output=True,
                text=True,
                timeout=400,
            )
            self.assertEqual((job.returncode, job.stderr), (0, ""), f"{words}: {job.stdout}")


if __name__ == "__main__":
    unittest.main(verbosity=0)

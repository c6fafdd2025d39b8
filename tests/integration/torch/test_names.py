# SPDX-License-Identifier: Apache-2.0
"""What torch.distributed finds the backend and its calls by: the entry point, the names of newer versions, and the flight
recorder. PyTorch 2.14 and later."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import torch
from ranks import RanksTest, dist, torch_version

if torch_version() < (2, 14):
    print(f"skipped: PyTorch {torch.__version__} has no such names")
    sys.exit(77)

import shmem_torch  # noqa: F401

c10d = torch._C._distributed_c10d


def world():
    return dist.distributed_c10d._get_default_group()


def single_calls(rank, size):
    """The new names of the backend, and the old ones, do the same."""
    mine = torch.arange(3.0) + 10 * rank
    everything = torch.cat([torch.arange(3.0) + 10 * one for one in range(size)])
    backend = world()._get_backend(torch.device("cpu"))
    for group in (world(), backend):
        gathered = torch.zeros(3 * size)
        group.all_gather_single(gathered, mine).wait()
        assert torch.equal(gathered, everything)
        part = torch.zeros(3)
        group.reduce_scatter_single(part, everything.clone()).wait()
        assert torch.equal(part, size * mine)
        swapped = torch.zeros(size)
        group.all_to_all_single(swapped, torch.arange(float(size)) + 10 * rank, [], []).wait()
        assert torch.equal(swapped, torch.arange(size) * 10.0 + rank)
        many = [torch.zeros(3 * size) for _ in range(3)]
        group.all_gather_single_coalesced(many, [mine] * 3).wait()
        assert all(torch.equal(one, everything) for one in many)
        parts = [torch.zeros(3) for _ in range(2)]
        group.reduce_scatter_single_coalesced(parts, [everything.clone()] * 2).wait()
        assert all(torch.equal(one, size * mine) for one in parts)
        options = c10d.GatherOptions()
        options.rootRank = size - 1
        whole = torch.zeros(3 * size) if rank == size - 1 else torch.zeros(0)
        group.gather_single(whole, mine, options).wait()
        assert rank != size - 1 or torch.equal(whole, everything)


def calls_of_python(rank, size):
    """Those of torch.distributed that have come since 2.6."""
    mine = torch.full((2,), float(rank))
    everything = torch.arange(float(size)).repeat_interleave(2)
    for name in ("all_gather_single", "all_gather_into_tensor"):
        if call := getattr(dist, name, None):
            gathered = torch.zeros(2 * size)
            call(gathered, mine)
            assert torch.equal(gathered, everything), name
    for name in ("reduce_scatter_single", "reduce_scatter_tensor"):
        if call := getattr(dist, name, None):
            part = torch.zeros(2)
            call(part, everything.clone())
            assert torch.equal(part, size * mine), name
    for name in ("gather_single", "gather_into_tensor"):
        if call := getattr(dist, name, None):
            whole = torch.zeros(2 * size) if rank == 0 else None
            call(mine, whole, group_dst=0)
            assert rank != 0 or torch.equal(whole, everything), name


def wrong_single_calls(rank, size):
    """One that is refused on the root is an exception on all."""
    options = c10d.GatherOptions()
    text = ""
    try:
        world().gather_single(torch.zeros(size if rank == 0 else 0), torch.zeros(3), options).wait()
    except (RuntimeError, ValueError) as error:
        text = str(error)
    dist.barrier()
    return text


def recorded(rank, size):
    recorder = c10d.FlightRecorderHook.attach(world())
    dist.all_reduce(torch.zeros(4))
    dist.all_gather([torch.zeros(2) for _ in range(size)], torch.zeros(2))
    dist.barrier()
    trace = json.loads(c10d._dump_fr_trace_json(includeCollectives=True))
    recorder.remove()
    return [(one["profiling_name"], one["retired"]) for one in trace["entries"]]


class Names(RanksTest):
    def test_single_calls(self):
        for size in (1, 2, 3):
            with self.subTest(size=size):
                self.run_all(size, [single_calls, calls_of_python])

    def test_wrong_single_calls(self):
        for rank, text in enumerate(self.on_ranks(2, wrong_single_calls)):
            self.assertIn("2 times as many elements" if rank == 0 else "rank 0", text)

    def test_the_flight_recorder_sees_the_calls(self):
        os.environ["TORCH_FR_BUFFER_SIZE"] = "100"
        self.addCleanup(os.environ.pop, "TORCH_FR_BUFFER_SIZE")
        for entries in self.on_ranks(2, recorded):
            names = ("c10d:allreduce", "c10d:allgather", "c10d:barrier")
            self.assertEqual([tuple(entry) for entry in entries], [(name, True) for name in names])

    def test_a_program_needs_no_import(self):
        program = """
import torch, torch.distributed as dist, sys
assert "shmem_torch" not in sys.modules
dist.init_process_group("shmem", init_method="file://" + sys.argv[1], rank=0, world_size=1)
assert dist.get_backend() == "shmem" and "shmem_torch" in sys.modules
tensor = torch.ones(3)
dist.all_reduce(tensor)
dist.destroy_process_group()
print("good")
"""
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(
                [sys.executable, "-c", program, f"{folder}/store"], capture_output=True, text=True, timeout=300
            )
        self.assertEqual((run.stdout, run.returncode), ("good\n", 0), run.stderr)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Programs that ask for gloo, and get shmem: SHMEM_TORCH_GLOO=1, and python -m shmem_torch."""

import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import torch
from ranks import RanksTest, dist

from shmem_torch import _gloo

PROGRAM = """
import sys, torch, torch.distributed as dist
import torch.multiprocessing

def backend_of(group=None):
    group = group or dist.distributed_c10d._get_default_group()
    if hasattr(group, "_get_backend"):
        group = group._get_backend(torch.device("cpu"))
    return type(group).__name__ if "ProcessGroupGloo" in type(group).__name__ else group.name()

def rank_of(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    tensor = torch.full((1000,), float(rank + 1))
    dist.all_reduce(tensor)
    same = (tensor == 3).all().item()
    half = dist.new_group([0, 1])
    dist.barrier(half)
    open(f"{folder}/{rank}", "w").write(f"{backend_of()} {backend_of(half)} {dist.get_backend()} {same} {sys.argv[1:]}")
    dist.destroy_process_group()

if __name__ == "__main__":
    torch.multiprocessing.spawn(rank_of, args=(sys.argv[1],), nprocs=2)
"""


def backend_of(group):
    return (group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group).name()


def groups_in_place_of_gloo(rank, size):
    for asked in ["gloo", "GLOO"] + (["cpu:gloo"] if hasattr(dist.distributed_c10d, "BackendConfig") else []):
        group = dist.new_group(backend=asked)
        assert backend_of(group) == "shmem", (asked, backend_of(group))
        assert dist.get_backend(group) in ("gloo", "cpu:gloo"), dist.get_backend(group)
        tensor = torch.full((300_000,), float(rank))
        dist.all_reduce(tensor, group=group)
        assert (tensor == size * (size - 1) / 2).all()
        objects = [None] * size
        dist.all_gather_object(objects, rank, group=group)
        assert objects == list(range(size))
        if dist.get_backend(group) == "gloo":
            dist.monitored_barrier(group)  # which torch refuses unless the group is gloo's
        outside = dist.new_group([0], backend=asked)
        assert (backend_of(outside) == "shmem") if rank == 0 else (outside == dist.GroupMember.NON_GROUP_MEMBER)
        dist.barrier(group)
    assert backend_of(dist.new_group(backend="shmem")) == "shmem"
    own = dist.ProcessGroupGloo(dist.HashStore(), 0, 1, timeout=dist.default_pg_timeout)
    assert type(own) is dist.ProcessGroupGloo


class GlooTest(RanksTest):
    def run_python(self, *arguments, **variables):
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [sys.executable, *arguments],
                env={**os.environ, **variables},
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=300,
            )
            output.seek(0)
            return done.returncode, output.read()

    def test_groups_of_a_program_that_asks_for_gloo(self):
        self.on_ranks(2, groups_in_place_of_gloo, prepare=_gloo.take_over)

    def test_names_of_several_devices(self):
        for asked, instead in [
            ("cpu:gloo,cuda:nccl", "cpu:shmem,cuda:nccl"),
            ("cuda:nccl,cpu:gloo", "cuda:nccl,cpu:shmem"),
            ("cuda:gloo", "cuda:gloo"),
            ("nccl", "nccl"),
            ("undefined", "shmem"),
        ]:
            self.assertEqual(_gloo._in_place_of(asked), instead)
        several = hasattr(dist.distributed_c10d, "BackendConfig")
        with unittest.mock.patch("torch.cuda.is_available", return_value=True):
            self.assertEqual(_gloo._in_place_of("gloo"), "cpu:shmem,cuda:gloo" if several else "gloo")
            self.assertEqual(_gloo._in_place_of("undefined"), "cpu:shmem,cuda:nccl" if several else "undefined")

    def test_a_program_and_its_children(self):
        for options, expected in [(["-m", "shmem_torch"], "shmem shmem gloo True []"), ([], "ProcessGroupGloo")]:
            with tempfile.TemporaryDirectory() as folder:
                program = os.path.join(folder, "program.py")
                with open(program, "w", encoding="utf-8") as file:
                    file.write(PROGRAM)
                code, output = self.run_python(*options, program, folder)
                self.assertEqual(code, 0, output)
                for rank in range(2):
                    with open(os.path.join(folder, str(rank)), encoding="utf-8") as file:
                        text = file.read()
                    self.assertTrue(text.startswith(expected.replace("[]", f"['{folder}']")), text)

    def test_mistakes_are_named(self):
        for arguments, problem in [
            ([], "there is no program"),
            (["-m"], "there is no program"),
            (["--fast"], "there is no option --fast"),
            (["/nowhere.py"], "there is no file /nowhere.py"),
        ]:
            code, output = self.run_python("-m", "shmem_torch", *arguments)
            self.assertEqual((code, output.splitlines()[0]), (2, f"shmem_torch: {problem}"))
        code, output = self.run_python("-c", "import shmem_torch", SHMEM_TORCH_GLOO="yes")
        self.assertEqual(code, 1)
        self.assertIn('SHMEM_TORCH_GLOO is "yes"; it is 1', output)
        code, output = self.run_python("-m", "shmem_torch", "--help")
        self.assertEqual((code, output.split()[0]), (0, "Usage:"))


if __name__ == "__main__":
    unittest.main()

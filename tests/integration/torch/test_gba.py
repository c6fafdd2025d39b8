# SPDX-License-Identifier: Apache-2.0
"""Barriers of a group go through the GBA if there is one: here an emulated one, which oshrun starts."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest


BARRIERS = 200


def releases():
    """Barriers that the device has completed since it was started."""
    command = [os.path.join(os.environ["GBA_BIN"], "gba"), "info", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["counters"]["releases"]


def count_releases(dist, rank):
    """Makes BARRIERS barriers. Rank 0 prints how many the device has done: the others cannot complete one while it looks."""
    before = releases() if rank == 0 else 0
    for _ in range(BARRIERS):
        dist.barrier()
    if rank == 0:
        print(f"releases {releases() - before}")


def start():
    """(torch, torch.distributed, rank, size), in a group."""
    import torch
    import torch.distributed as dist

    import shmem_torch  # noqa: F401: registers the backend

    rank, size = int(os.environ["OSHRUN_RANK"]), int(os.environ["OSHRUN_SIZE"])
    dist.init_process_group("shmem", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=size)
    return torch, dist, rank, size


def differing_main():
    torch, dist, rank, size = start()
    for barrier_of in (0, 1):
        try:
            dist.barrier() if rank == barrier_of else dist.all_reduce(torch.zeros(3))
            print("nothing was raised")
        except RuntimeError as error:
            print(error)
        dist.barrier()
    count_releases(dist, rank)
    dist.barrier()
    dist.destroy_process_group()
    print("done", flush=True)


def rank_main():
    torch, dist, rank, size = start()
    dist.barrier()
    count_releases(dist, rank)
    for i in range(BARRIERS):
        dist.barrier()
        tensor = torch.full((1 + 100 * i,), float(rank))
        dist.all_reduce(tensor)
        assert (tensor == size * (size - 1) / 2).all()
    dist.barrier()
    dist.destroy_process_group()
    print("done", flush=True)


class Device(unittest.TestCase):
    def run_ranks(self, variables, *arguments):
        """What three ranks print, each of which must come to its end."""
        oshrun = os.path.join(os.environ["GBA_BIN"], "oshrun")
        with tempfile.TemporaryDirectory() as folder:
            program = [sys.executable, __file__, folder + "/store", *arguments]
            job = subprocess.run(
                [oshrun, "-n", "3", "--gba", "fake", "--timeout", "90", *program],
                env=os.environ | variables,
                capture_output=True,
                text=True,
                timeout=110,
            )
        output = job.stdout + job.stderr
        self.assertEqual((job.returncode, job.stdout.count("done")), (0, 3), output)
        counted = int(re.search(r"releases (\d+)", job.stdout).group(1))
        # If the device was given no processor for a while, some barriers were completed without it.
        self.assertGreaterEqual(counted, BARRIERS * 9 // 10)
        self.assertLessEqual(counted, BARRIERS)
        return output

    def test_barriers_go_through_the_device(self):
        output = self.run_ranks({"SHMEM_INFO": "1"})
        self.assertRegex(output, "barrier gba", output)

    def test_a_barrier_in_the_place_of_another_call_is_an_error_in_debug_mode(self):
        output = self.run_ranks({"SHMEM_DEBUG": "1"}, "differing")
        allreduce = "allreduce of 12 bytes, sum, type float32"
        self.assertEqual(output.count(f"rank 0 makes barrier; rank 1 makes {allreduce}"), 3, output)
        self.assertEqual(output.count(f"rank 0 makes {allreduce}; rank 1 makes barrier"), 3, output)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        differing_main() if sys.argv[2:] else rank_main()
    else:
        try:
            import torch  # noqa: F401
        except ImportError as error:
            print(f"skipped: {error}")
            sys.exit(77)
        unittest.main(verbosity=0)

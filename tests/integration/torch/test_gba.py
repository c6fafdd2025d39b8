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


def rank_main():
    import torch
    import torch.distributed as dist

    import shmem_torch  # noqa: F401: registers the backend

    rank, size = int(os.environ["OSHRUN_RANK"]), int(os.environ["OSHRUN_SIZE"])
    dist.init_process_group("shmem", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=size)
    dist.barrier()
    # The others cannot complete a barrier while rank 0 looks.
    before = releases() if rank == 0 else 0
    for _ in range(BARRIERS):
        dist.barrier()
    if rank == 0:
        print(f"releases {releases() - before}")
    for i in range(BARRIERS):
        dist.barrier()
        tensor = torch.full((1 + 100 * i,), float(rank))
        dist.all_reduce(tensor)
        assert (tensor == size * (size - 1) / 2).all()
    dist.barrier()
    dist.destroy_process_group()
    print("done", flush=True)


class Device(unittest.TestCase):
    def test_barriers_go_through_the_device(self):
        oshrun = os.path.join(os.environ["GBA_BIN"], "oshrun")
        with tempfile.TemporaryDirectory() as folder:
            job = subprocess.run(
                [oshrun, "-n", "3", "--gba", "fake", "--timeout", "90", sys.executable, __file__, folder + "/store"],
                env=os.environ | {"SHMEM_INFO": "1"},
                capture_output=True,
                text=True,
                timeout=110,
            )
        output = job.stdout + job.stderr
        self.assertEqual((job.returncode, job.stdout.count("done")), (0, 3), output)
        self.assertRegex(output, "barrier gba", output)
        counted = int(re.search(r"releases (\d+)", job.stdout).group(1))
        # If the device was given no processor for a while, some barriers were completed without it.
        self.assertGreaterEqual(counted, BARRIERS * 9 // 10)
        self.assertLessEqual(counted, BARRIERS)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        rank_main()
    else:
        try:
            import torch  # noqa: F401
        except ImportError as error:
            print(f"skipped: {error}")
            sys.exit(77)
        unittest.main(verbosity=0)

# SPDX-License-Identifier: Apache-2.0
"""Barriers of a group go through the GBA if there is one: here an emulated one, which oshrun starts."""

import os
import subprocess
import sys
import tempfile
import unittest


def rank_main():
    import torch
    import torch.distributed as dist

    import shmem_torch  # noqa: F401: registers the backend

    rank, size = int(os.environ["OSHRUN_RANK"]), int(os.environ["OSHRUN_SIZE"])
    dist.init_process_group("shmem", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=size)
    for i in range(200):
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

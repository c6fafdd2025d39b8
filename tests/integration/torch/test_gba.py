# SPDX-License-Identifier: Apache-2.0
"""Barriers of a group go through the GBA if there is one: here an emulated one, which oshrun starts.

The ranks import torch once, and make each kind of calls in a process of its own.
"""

import importlib.util
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BARRIERS = 200


def releases():
    """Barriers that the device has completed since it was started."""
    command = [os.path.join(os.environ["GBA_BIN"], "gba"), "info", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["counters"]["releases"]


def count_releases(rank):
    """Makes BARRIERS barriers. Rank 0 prints how many the device has done: the others cannot complete one while it looks."""
    before = releases() if rank == 0 else 0
    for _ in range(BARRIERS):
        dist.barrier()
    if rank == 0:
        print(f"releases {releases() - before}")


def differing_calls(rank, size):
    for barrier_of in (0, 1):
        try:
            dist.barrier() if rank == barrier_of else dist.all_reduce(torch.zeros(3))
            print("nothing was raised")
        except RuntimeError as error:
            print(error)
        dist.barrier()
    count_releases(rank)
    dist.barrier()


def right_calls(rank, size):
    dist.barrier()
    count_releases(rank)
    for i in range(BARRIERS):
        dist.barrier()
        tensor = torch.full((1 + 100 * i,), float(rank))
        dist.all_reduce(tensor)
        assert (tensor == size * (size - 1) / 2).all()
    dist.barrier()


def aborted_barrier(rank, size):
    """Rank 2 does not come; rank 1 aborts what rank 0, and it itself, wait for in the device."""
    aborted = pathlib.Path(sys.argv[1], "has aborted")

    def abort():
        shmem_torch.abort()
        aborted.touch()

    count_releases(rank)
    if rank == 1:
        threading.Timer(0.3, abort).start()
    while rank == 2 and not aborted.exists():
        time.sleep(0.01)
    began = time.monotonic()
    try:
        dist.barrier()
        print("nothing was raised")
    except RuntimeError as error:
        print(error, "soon" if time.monotonic() - began < 20 else "late")


KINDS = {
    "aborted": (aborted_barrier, {"SHMEM_INFO": "1"}),
    "right": (right_calls, {"SHMEM_INFO": "1"}),
    "differing": (differing_calls, {"SHMEM_DEBUG": "1"}),
    "nodes": (right_calls, {"SHMEM_INFO": "1", "SHMEM_HOST_ID": "kiwi lemon"}),  # in turn
}


def make_calls(folder, kind):
    """What one rank prints goes to a file."""
    body, variables = KINDS[kind]
    rank, size = int(os.environ["OSHRUN_RANK"]), int(os.environ["OSHRUN_SIZE"])
    for name, values in variables.items():
        os.environ[name] = values.split()[rank % len(values.split())]
    with open(f"{folder}/{kind}.{rank}", "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    dist.init_process_group("shmem", init_method=f"file://{folder}/{kind}", rank=rank, world_size=size)
    body(rank, size)
    dist.destroy_process_group()
    print("done")


class Device(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        oshrun = os.path.join(os.environ["GBA_BIN"], "oshrun")
        cls.job = subprocess.run(
            [oshrun, "-n", "3", "--gba", "fake", "--timeout", "300", sys.executable, __file__, folder.name],
            capture_output=True,
            text=True,
            timeout=400,
        )

    def output_of(self, kind):
        """What three ranks print, each of which must come to its end."""
        output = "".join(file.read_text() for file in self.folder.glob(f"{kind}.*"))
        everything = self.job.stdout + self.job.stderr + output
        self.assertEqual((self.job.returncode, output.count("done")), (0, 3), everything)
        counted = int(re.search(r"releases (\d+)", output).group(1))
        # If the device was given no processor for a while, some barriers were completed without it.
        self.assertGreaterEqual(counted, BARRIERS * 9 // 10)
        self.assertLessEqual(counted, BARRIERS)
        return output

    def test_abort_ends_a_barrier_in_the_device(self):
        output = self.output_of("aborted")
        self.assertRegex(output, "barrier gba", output)
        self.assertEqual(len(re.findall("rank 1 has aborted.* soon", output)), 3, output)

    def test_barriers_go_through_the_device(self):
        output = self.output_of("right")
        self.assertRegex(output, "barrier gba", output)

    def test_those_between_nodes_do_too(self):
        output = self.output_of("nodes")
        self.assertIn("its 2 nodes synchronise through it", output)

    def test_a_barrier_in_the_place_of_another_call_is_an_error_in_debug_mode(self):
        output = self.output_of("differing")
        allreduce = "allreduce of 12 bytes, sum, type float32"
        self.assertEqual(output.count(f"rank 0 makes barrier; rank 1 makes {allreduce}"), 3, output)
        self.assertEqual(output.count(f"rank 0 makes {allreduce}; rank 1 makes barrier"), 3, output)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        if importlib.util.find_spec("torch") is None:
            print("skipped: torch is not installed")
            sys.exit(77)
        unittest.main(verbosity=0)
    import torch
    import torch.distributed as dist

    import shmem_torch  # noqa: F401: registers the backend

    for kind in KINDS:
        process = multiprocessing.get_context("fork").Process(target=make_calls, args=(sys.argv[1], kind))
        process.start()
        process.join()
        if process.exitcode != 0:
            sys.exit(1)

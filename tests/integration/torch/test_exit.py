# SPDX-License-Identifier: Apache-2.0
"""Ranks whose interpreter exits while other threads wait in calls, or callbacks of futures are outstanding."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

import ranks  # noqa: F401: exits if there is no torch

START = """
import os, sys, threading, time, types
import torch
import torch.distributed as dist
import shmem_torch
folder, rank = sys.argv[1], int(sys.argv[2])

class SlowEnd:
    # Runs when the modules are torn down: threads that want Python's lock are ended then.
    def __del__(self, open=open, sleep=time.sleep, name=folder + "/ends"):
        open(name, "w").close()
        sleep(3)

def end_slowly():
    # Not in this module: what daemon threads refer to stays.
    module = sys.modules["slow"] = types.ModuleType("slow")
    module.slow = SlowEnd()

def until_the_other_ends():
    while not os.path.exists(folder + "/ends"):
        time.sleep(0.01)

dist.init_process_group("shmem", init_method=f"file://{folder}/store", rank=rank, world_size=2)
dist.barrier()
"""

DAEMON = """
def forever(call):
    while True:
        try:
            call()
        except RuntimeError:
            pass

if rank == 0:
    for call in (lambda: dist.all_reduce(torch.ones(4)), lambda: dist.recv(torch.zeros(1), 1)):
        threading.Thread(target=forever, args=(call,), daemon=True).start()
    time.sleep(0.3)
    end_slowly()
    sys.exit(3)
else:
    until_the_other_ends()
    os._exit(3)
"""

CALLBACK = """
if rank == 0:
    called = []
    works = [dist.all_reduce(torch.ones(4), async_op=True), dist.irecv(torch.zeros(4), 1)]
    futures = [work.get_future().then(called.append) for work in works]
    end_slowly()
else:
    until_the_other_ends()
    dist.all_reduce(torch.ones(4))
    dist.send(torch.ones(4), 0)
    os._exit(0)
"""

HOOK = """
import atexit
tensor = torch.ones(4)

def at_exit():  # registered after the module's, so it runs before; the next one runs after that
    dist.all_reduce(tensor)

work = dist.all_reduce(tensor, async_op=True)
atexit.register(at_exit)
if rank == 1:
    time.sleep(0.5)
"""

LATE_HOOK = """
import atexit

def at_exit():
    import torch
    import torch.distributed as dist
    tensor = torch.ones(4)
    dist.all_reduce(tensor)
    dist.destroy_process_group()
    print("sum", int(tensor[0]))

atexit.register(at_exit)  # before the module's, so it runs after that
"""


class Exits(unittest.TestCase):
    def run_ranks(self, program, status=0, hosts=None):
        with tempfile.TemporaryDirectory() as folder:
            processes = [
                subprocess.Popen(
                    [sys.executable, "-c", textwrap.dedent(program), folder, str(rank)],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env={**os.environ, **({"SHMEM_HOST_ID": hosts[rank]} if hosts else {})},
                )
                for rank in range(2)
            ]
            try:
                outputs = [process.communicate(timeout=300) for process in processes]
            finally:
                for process in processes:
                    process.kill()
        for process, (_, errors) in zip(processes, outputs, strict=True):
            self.assertEqual(process.returncode, status, errors)
        return [output for output, _ in outputs]

    def test_daemon_threads_in_calls(self):
        self.run_ranks(START + DAEMON, 3)

    def test_daemon_threads_in_calls_to_another_node(self):
        if os.environ.get("TESTS_WITH_UCX") == "0":
            self.skipTest("libshmem is built without UCX")
        self.run_ranks(START + DAEMON, 3, ("kiwi", "lemon"))

    def test_callbacks_of_futures(self):
        self.run_ranks(START + CALLBACK)

    def test_calls_of_exit_handlers(self):
        self.run_ranks(START + HOOK)
        for output in self.run_ranks(LATE_HOOK + START):
            self.assertIn("sum 2", output)


if __name__ == "__main__":
    unittest.main(verbosity=0)

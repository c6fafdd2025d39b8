# SPDX-License-Identifier: Apache-2.0
"""examples/torch/step_sync.py ends, too, if the threads of gloo run last: PyTorch 2.6 waits for them with Python's lock
held when a group ends, and they need it to drop the last reference to a tensor."""

import os
import pathlib
import signal
import subprocess
import sys
import unittest

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples" / "torch"

# The ranks share a processor, and their other threads get it only when both wait.
PROGRAM = """
import os, torch.distributed as dist
import launch, step_sync

new_group = dist.new_group
def new_group_with_late_threads(*arguments, **options):
    group = new_group(*arguments, **options)
    for thread in map(int, os.listdir("/proc/self/task")):
        if thread != os.getpid():
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
    return group

dist.new_group = new_group_with_late_threads
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
step_sync.STEPS = 10
launch.start(step_sync.main)
"""


class LateGloo(unittest.TestCase):
    def test_step_sync_ends(self):
        path = os.pathsep.join([str(EXAMPLES), os.environ["PYTHONPATH"]])
        for _ in range(5):
            run = subprocess.Popen(
                [sys.executable, "-c", PROGRAM],
                env={**os.environ, "PYTHONPATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            try:
                said, _ = run.communicate(timeout=600)
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL)  # the ranks, too
                run.communicate()
                raise
            self.assertIn("step_sync: correct", said)
            self.assertEqual(run.returncode, 0, said)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""PEs that die, do not come, or give up: what the others' exceptions are. Starts jobs of its own."""

import os
import subprocess
import sys
import unittest

PROGRAM = """
import os, signal, sys, time
import numpy as np
import shmem_kv
from shmem_kv import Cache, KVShuffle, Operator, Plan

shmem_kv.init(16 << 20)
me = shmem_kv.my_pe()
k, v = shmem_kv.zeros((4, 2, 4, 8)), shmem_kv.zeros((4, 2, 4, 8))
cache, plan, operator = Cache(k, v), Plan([(0, 1, 1, 2)]), Operator()
try:
    {}
    print(f"PE {{me}}: nothing", flush=True)
except OSError as error:
    print(f"PE {{me}}: {{type(error).__name__}} {{error.errno}}: {{error.strerror}}", flush=True)
except Exception as error:
    print(f"PE {{me}}: {{type(error).__name__}}: {{error}}", flush=True)
"""


class Failures(unittest.TestCase):
    def lines(self, code, pes=2, **environment):
        oshrun = os.path.join(os.environ["GBA_BIN"], "oshrun")
        program = PROGRAM.format(code.replace("\n", "\n    "))
        job = subprocess.run(
            [oshrun, "-n", str(pes), "--gba", "off", "--timeout", "30", sys.executable, "-c", program],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.output = job.stdout + job.stderr
        return {line[:4]: line[6:] for line in job.stdout.splitlines() if line.startswith("PE ")}

    def test_a_pe_that_dies_is_a_connection_error(self):
        lines = self.lines(
            """
if me == 1:
    os.kill(os.getpid(), signal.SIGKILL)
operator.shuffle(plan, cache)
"""
        )
        self.assertRegex(lines.get("PE 0", ""), "^ConnectionError [0-9]+: .*PE 1", self.output)

    def test_so_it_is_in_two_phases(self):
        lines = self.lines(
            """
if me == 1:
    os.kill(os.getpid(), signal.SIGKILL)
operator.start(plan, cache)
operator.wait()
"""
        )
        self.assertRegex(lines.get("PE 0", ""), "^ConnectionError [0-9]+: .*PE 1", self.output)

    def test_a_pe_that_does_not_come_is_a_timeout(self):
        lines = self.lines(
            """
if me == 1:
    time.sleep(2)
operator.shuffle(plan, cache)
""",
            SHMEM_BARRIER_TIMEOUT="0.3",
        )
        self.assertRegex(lines.get("PE 0", ""), "^TimeoutError [0-9]+: .*PE 1", self.output)

    def test_a_partner_that_gives_up_is_an_aborted_connection(self):
        lines = self.lines("KVShuffle().compute([(1, 0), (0, 1)], k, v, [4 - me], [0])")
        self.assertRegex(lines.get("PE 0", ""), "^ValueError: .*block 4 of PE 0 to block 0 of PE 1", self.output)
        self.assertRegex(lines.get("PE 1", ""), "^ConnectionAbortedError [0-9]+: .*PE 0 gave up", self.output)

    def test_an_exception_of_one_pe_ends_the_job(self):
        lines = self.lines(
            """
if me == 1:
    sys.exit(3)
shmem_kv.finalize()
"""
        )
        self.assertRegex(lines.get("PE 0", ""), "^ConnectionError [0-9]+: .*PE 1 .* exited with status 3", self.output)


if __name__ == "__main__":
    unittest.main(verbosity=0)

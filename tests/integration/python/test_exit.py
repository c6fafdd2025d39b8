# SPDX-License-Identifier: Apache-2.0
"""Processes whose interpreter exits while daemon threads are in calls that release Python's lock."""

import subprocess
import sys
import unittest

START = """
import os, sys, threading, time, types
import numpy as np
import shmem_kv

class SlowEnd:
    # Runs when the modules are torn down: threads that want Python's lock are ended then.
    def __del__(self, sleep=time.sleep):
        sleep(0.5)

def forever(call):
    while True:
        try:
            call()
        except Exception:
            pass

def keep_lock():
    # For longer than a thread's turn: threads that return from calls wait for the lock meanwhile.
    sum(range(3_000_000))

def exit_beside(*calls):
    for call in (*calls, keep_lock):
        threading.Thread(target=forever, args=(call,), daemon=True).start()
    time.sleep(0.2)
    # Not in this module: what daemon threads refer to stays.
    module = sys.modules["slow"] = types.ModuleType("slow")
    module.slow = SlowEnd()
    sys.exit(7)
"""

EXCHANGE = """
name = f"exit-{os.getpid()}"
owner, reader = shmem_kv.Exchange(name), shmem_kv.Exchange(name)
region = owner.allocate(1 << 20)
owner.publish("block", region.part(0, 1 << 20))
found = reader.find(["block"])
to = [np.zeros(1 << 20, np.uint8) for _ in range(3)]
exit_beside(
    lambda: owner.withdraw("none", 0.05),
    lambda: reader.find([f"key {i}" for i in range(200)]),
    lambda: reader.pull(found, to[0]),
    lambda: reader.start_pull(found, [to[1]]).wait(),
    lambda: shmem_kv.Exchange(name + "other").close(),
    reader.members,
)
"""

STORE = """
exchange = shmem_kv.Exchange(f"exit-{os.getpid()}")
store = shmem_kv.Store(exchange, 1 << 20)
block, to = np.zeros(1 << 18, np.uint8), np.zeros(1 << 18, np.uint8)
numbers = iter(range(1 << 30))
store.put("block", block)
exit_beside(lambda: store.put(str(next(numbers)), block), lambda: store.get("block", to))
"""

JOB = """
shmem_kv.init()
exit_beside(shmem_kv.barrier_all)
"""

STREAM = """
from shmem.acl import rt
stream, memory = rt.create_stream()[0], rt.malloc(1 << 20, 0)[0]
exit_beside(lambda: rt.synchronize_stream(stream), lambda: rt.memset(memory, 1 << 20, 0, 1 << 20))
"""

SLOW_ERROR = """
from shmem_kv import _exchange_errors
error_of = _exchange_errors.error_of

def slow_error_of(*args):
    until = time.monotonic() + 1
    while time.monotonic() < until:
        pass
    return error_of(*args)

_exchange_errors.error_of = slow_error_of
exit_beside(lambda: shmem_kv.Exchange("no/name"))
"""

LATE_RETURN = """
import ctypes
name = f"exit-{os.getpid()}"
owner, reader = shmem_kv.Exchange(name, lease_time=60), shmem_kv.Exchange(name)
owner.publish("block", owner.allocate(1 << 20).part(0, 1 << 20))
found = reader.find(["block"], lease=60)
threading.Thread(target=lambda: owner.withdraw("block", 3), daemon=True).start()
time.sleep(0.2)
# When the interpreter has ended, the process sleeps for as many seconds as its status says, and the call returns.
libc = ctypes.CDLL(None)
libc.on_exit(ctypes.cast(libc.sleep, ctypes.c_void_p), None)
sys.exit(4)
"""


class Exits(unittest.TestCase):
    def exit_with(self, program, status=7):
        for _ in range(3):
            command = [sys.executable, "-X", "faulthandler", "-c", START + program]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual((ended.returncode, ended.stderr), (status, ""))

    def test_beside_calls_of_an_exchange(self):
        self.exit_with(EXCHANGE)

    def test_beside_calls_of_a_store(self):
        self.exit_with(STORE)

    def test_beside_calls_of_a_job(self):
        self.exit_with(JOB)

    def test_beside_calls_of_streams(self):
        self.exit_with(STREAM)

    def test_beside_an_error(self):
        self.exit_with(SLOW_ERROR)

    def test_before_a_call_returns(self):
        self.exit_with(LATE_RETURN, 4)


if __name__ == "__main__":
    unittest.main(verbosity=0)

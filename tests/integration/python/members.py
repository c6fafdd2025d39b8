# SPDX-License-Identifier: Apache-2.0
"""For tests of exchanges: members in processes of their own, and names of exchanges that no other test has."""

import contextlib
import errno
import itertools
import os
import pathlib
import subprocess
import sys
import threading
import unittest

import shmem_kv
from shmem_kv.adapters import _common

_numbers = itertools.count()
_PROGRAM = pathlib.Path(__file__).parent / "exchange_member.py"
LEAST_HELD = 1 << 20  # bytes of a holder
LIMIT = 60  # seconds, for what takes far less
shmem_kv.Exchange.__init__.__kwdefaults__["join_time"] = LIMIT  # on a slow machine a member would miss others
# Whether tests of adapters have a holder. If not, each engine has a store of its own.
WITH_HOLDER = os.environ.get("TESTS_WITH_HOLDER") == "1"
if WITH_HOLDER:
    _common.HOLDER_SECONDS = LIMIT  # a slow machine would have stores fail
# Whether libshmem is built with UCX. A test that is started by hand takes it that it is.
WITH_UCX = os.environ.get("TESTS_WITH_UCX") != "0"


class ExchangeTest(unittest.TestCase):
    def setUp(self):
        self.name = f"python-{os.getpid()}-{next(_numbers)}"
        self.holder = self.holder_address = None

    def join(self, **options):
        exchange = shmem_kv.Exchange(self.name, **options)
        self.addCleanup(exchange.close)
        return exchange

    def start(self, role, name=None, program=_PROGRAM, address=None, **variables):
        """A process of exchange_member.py, which is ready."""
        command = [sys.executable, program, role, name or self.name] + ([address] if address else [])
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables}
        )
        self.addCleanup(end, process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def hold(self, nbytes, *options):
        """A process that is the holder of the exchange."""
        program = os.path.join(os.environ["GBA_BIN"], "kv_exchange")
        command = [program, "hold", self.name, "--bytes", str(nbytes), *options]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(end, process)
        line = process.stdout.readline()
        self.assertIn("holding", line)
        self.holder_address = line.rpartition(", at ")[2].strip()  # with --listen
        return process

    def store_options(self, nbytes):
        """Options of an adapter: for a store of its own, or for the holder, which is there then."""
        if not WITH_HOLDER:
            return {"exchange": self.name, "store_bytes": nbytes}
        if self.holder is None:
            self.holder = self.hold(max(nbytes, LEAST_HELD))
        return {"holder": self.name}

    def hold_on_this_node(self, nbytes):
        """Lets members of other nodes connect with the holder, if there is one. Returns the address to connect with, or
        None: that of the engine."""
        if not WITH_HOLDER:
            return None
        if not WITH_UCX:
            self.skipTest("libshmem is built without UCX")
        self.holder = self.hold(max(nbytes, LEAST_HELD), "--listen", "127.0.0.1:0")
        return self.holder_address

    @contextlib.contextmanager
    def on_node(self, node):
        """Members that join meanwhile are on a node of that name, as far as members know."""
        os.environ.update(SHMEM_HOST_ID=node, SHMEM_UID_SECRET="a secret of a test")
        try:
            yield
        except shmem_kv.ExchangeError as error:
            if WITH_UCX or error.errno != errno.ENOTSUP:
                raise
            self.skipTest(str(error))
        finally:
            del os.environ["SHMEM_HOST_ID"], os.environ["SHMEM_UID_SECRET"]

    def wait_for(self, done):
        """Members see those that come and go a little later."""
        pause = threading.Event()
        for _ in range(100 * LIMIT):
            if done():
                return
            pause.wait(0.01)
        self.fail("it has not happened")


def kill(process):
    """kill -9."""
    process.kill()
    process.wait(LIMIT)


def end(process):
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()

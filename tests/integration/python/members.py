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

_numbers = itertools.count()
_PROGRAM = pathlib.Path(__file__).parent / "exchange_member.py"
LIMIT = 60  # seconds, for what takes far less
# Whether libshmem is built with UCX. A test that is started by hand takes it that it is.
WITH_UCX = os.environ.get("TESTS_WITH_UCX") != "0"


class ExchangeTest(unittest.TestCase):
    def setUp(self):
        self.name = f"python-{os.getpid()}-{next(_numbers)}"

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

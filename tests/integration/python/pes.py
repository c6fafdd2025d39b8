# SPDX-License-Identifier: Apache-2.0
"""Tests that several PEs run together, the same ones in the same order. main() runs the tests of a file."""

import unittest

import shmem_kv

HEAP = 16 << 20


class PeTest(unittest.TestCase):
    """Starts the library before each test and ends it afterwards."""

    def setUp(self):
        shmem_kv.init(HEAP)
        self.me = shmem_kv.my_pe()
        self.pes = shmem_kv.n_pes()

    def tearDown(self):
        if shmem_kv.initialized():
            shmem_kv.finalize()


def main():
    # A PE that fails a test stops at once: the launcher then ends the others, which may wait for it.
    unittest.main(module="__main__", failfast=True, verbosity=0)

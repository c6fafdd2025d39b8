# SPDX-License-Identifier: Apache-2.0
"""Tests that several PEs run at once: all of them the same, in the same order. Those of a file are run by main()."""

import unittest

import shmem_kv

HEAP = 16 << 20


class PeTest(unittest.TestCase):
    """The library runs during each test."""

    def setUp(self):
        shmem_kv.init(HEAP)
        self.me = shmem_kv.my_pe()
        self.pes = shmem_kv.n_pes()

    def tearDown(self):
        if shmem_kv.initialized():
            shmem_kv.finalize()


def main():
    # The PE that finds something wrong stops at once, and so the launcher ends the others, which may wait for it.
    unittest.main(module="__main__", failfast=True, verbosity=0)

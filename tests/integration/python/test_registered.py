# SPDX-License-Identifier: Apache-2.0
"""Caches in memory that the program has already."""

import mmap
import os
from multiprocessing import shared_memory

import numpy as np
import shmem_kv
from pes import PeTest, main

SHAPE = (8, 2, 16, 32)  # [blocks][kv_heads][page_size][head_dim]
BYTES = int(np.prod(SHAPE)) * 2


class Registered(PeTest):
    def shuffle_round(self, k, v):
        """Block 3 of each PE goes to block 5 of the next one."""
        k[:] = self.me + 1
        v[:] = 10 * (self.me + 1)
        plan = shmem_kv.Plan([(pe, 3, (pe + 1) % self.pes, 5) for pe in range(self.pes)])
        with shmem_kv.Operator() as operator:
            operator.shuffle(plan, shmem_kv.Cache(k, v))
        before = (self.me - 1) % self.pes
        self.assertTrue((k[5] == before + 1).all() and (v[5] == 10 * (before + 1)).all())
        self.assertTrue((k[4] == self.me + 1).all() and (v[4] == 10 * (self.me + 1)).all())

    def test_shared_memory_of_multiprocessing(self):
        memory = shared_memory.SharedMemory(create=True, size=2 * BYTES)
        try:
            both = np.ndarray((2, *SHAPE), np.float16, memory.buf)
            self.assertFalse(shmem_kv.is_symmetric(both))
            with self.assertRaisesRegex(ValueError, r"register\(\) takes others"):
                shmem_kv.Cache(both[0], both[1])
            shmem_kv.register(both)
            self.assertTrue(shmem_kv.is_symmetric(both))
            self.shuffle_round(both[0], both[1])
            shmem_kv.unregister(both)
            self.assertFalse(shmem_kv.is_symmetric(both))
            del both
        finally:
            memory.close()
            memory.unlink()

    def test_a_part_of_a_memfd(self):
        fd = os.memfd_create("cache")
        os.ftruncate(fd, 4096 + 2 * BYTES)
        both = np.frombuffer(mmap.mmap(fd, 4096 + 2 * BYTES), np.float16, offset=4096).reshape((2, *SHAPE))
        with self.assertRaisesRegex(ValueError, "is byte 4096 of file descriptor"):
            shmem_kv.register(both, fd, 0)
        shmem_kv.register(both, fd, 4096)
        os.close(fd)
        self.shuffle_round(both[0], both[1])
        # The rest is for finalize().

    def test_private_memory(self):
        both = np.zeros((2, *SHAPE), np.float16)
        shmem_kv.register(both)
        with self.assertRaises(FileExistsError):
            shmem_kv.register(both[1:])
        self.shuffle_round(both[0], both[1])
        shmem_kv.unregister(both)
        with self.assertRaisesRegex(ValueError, "has registered no memory"):
            shmem_kv.unregister(both)

    def test_what_cannot_be_registered(self):
        with self.assertRaisesRegex(ValueError, "not contiguous"):
            shmem_kv.register(np.zeros((4, 4))[:, 1])
        with self.assertRaisesRegex(ValueError, "gives 64 bytes|gives 128 bytes"):
            shmem_kv.register(np.zeros(64 if self.me == 1 else 128, np.uint8))


if __name__ == "__main__":
    main()

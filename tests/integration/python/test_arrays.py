# SPDX-License-Identifier: Apache-2.0
"""Starting and ending the library, and arrays in symmetric memory."""

import gc
import os
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
import shmem_kv
from pes import HEAP, PeTest, main


class Start(unittest.TestCase):
    def test_calls_before_init_say_that_it_is_missing(self):
        for call in (
            shmem_kv.finalize,
            shmem_kv.my_pe,
            shmem_kv.n_pes,
            shmem_kv.barrier_all,
            lambda: shmem_kv.empty(3),
            lambda: shmem_kv.is_symmetric(np.zeros(3)),
            lambda: shmem_kv.team_split_strided(0, 0, 1, 1),
            lambda: shmem_kv.team_destroy(0),
        ):
            with self.assertRaisesRegex(RuntimeError, r"the library does not run: init\(\) starts it"):
                call()
        self.assertFalse(shmem_kv.initialized())

    def test_the_library_starts_again_after_its_end(self):
        for _ in range(3):
            with shmem_kv.init(HEAP):
                self.assertTrue(shmem_kv.initialized())
                self.assertEqual(shmem_kv.zeros(10).sum(), 0)
            self.assertFalse(shmem_kv.initialized())

    def test_finalize_may_be_called_in_the_with_block(self):
        with shmem_kv.init(HEAP):
            shmem_kv.finalize()
        self.assertFalse(shmem_kv.initialized())

    def test_an_exception_passes_without_a_collective_end(self):
        with self.assertRaisesRegex(KeyError, "mine"):
            with shmem_kv.init(HEAP):
                raise KeyError("mine")
        self.assertTrue(shmem_kv.initialized())
        shmem_kv.finalize()

    def test_a_second_start_is_refused(self):
        with shmem_kv.init(HEAP):
            with self.assertRaisesRegex(RuntimeError, "runs already"):
                shmem_kv.init()

    def test_numbers_without_an_id_are_refused(self):
        for arguments in ({"my_pe": 0}, {"n_pes": 3}, {"unique_id": bytes(128)}, {"my_pe": 0, "n_pes": 3}):
            with self.assertRaisesRegex(ValueError, "unique_id, my_pe and n_pes go together"):
                shmem_kv.init(**arguments)
        with self.assertRaisesRegex(ValueError, "unique_id has 3 bytes, not the 128"):
            shmem_kv.init(unique_id=b"abc", my_pe=0, n_pes=3)
        with self.assertRaisesRegex(ValueError, "."):
            shmem_kv.init(unique_id=shmem_kv.unique_id(), my_pe=3, n_pes=3)

    def test_heaps_of_different_sizes_are_refused_on_all(self):
        with self.assertRaisesRegex(ValueError, "symmetric heaps of different sizes"):
            shmem_kv.init(HEAP + (os.getpid() % 64 << 21))

    def test_global_variables_of_the_interpreter_are_not_shared(self):
        with shmem_kv.init(HEAP):
            with open("/proc/self/maps") as maps:
                mine = [line.split() for line in maps if os.path.realpath(sys.executable) in line]
        self.assertTrue(any(line[1].startswith("rw-p") for line in mine), mine)


class Arrays(PeTest):
    def test_are_contiguous_with_the_requested_shape_and_type(self):
        for dtype in (np.int8, np.uint16, np.float16, np.float32, np.float64, np.uint64):
            array = shmem_kv.zeros((4, 2, 3, 5), dtype)
            self.assertEqual((array.shape, array.dtype), ((4, 2, 3, 5), dtype))
            self.assertTrue(array.flags.c_contiguous and array.flags.writeable and not array.any())
            self.assertTrue(shmem_kv.is_symmetric(array) and shmem_kv.is_symmetric(array[2:]))
            shmem_kv.free(array)
        self.assertEqual(shmem_kv.empty(7).shape, (7,))
        self.assertEqual(shmem_kv.empty((0, 3)).shape, (0, 3))
        self.assertFalse(shmem_kv.is_symmetric(np.zeros(3)))

    def test_of_python_objects_or_negative_shapes_are_refused(self):
        with self.assertRaisesRegex(TypeError, "Python objects"):
            shmem_kv.empty(3, object)
        with self.assertRaisesRegex(ValueError, "negative dimensions"):
            shmem_kv.empty((3, -1))

    def test_that_are_too_large_are_a_memory_error_with_its_reason(self):
        with self.assertRaisesRegex(MemoryError, "the symmetric heap has no room for that"):
            shmem_kv.empty(HEAP, np.float64)

    def test_different_sizes_are_refused_on_all(self):
        with self.assertRaisesRegex(MemoryError, "do not make the same call on the symmetric heap"):
            shmem_kv.empty(10 + self.me)
        self.assertEqual(shmem_kv.zeros(3).sum(), 0)

    def test_freed_memory_is_used_again(self):
        for _ in range(5):
            shmem_kv.free(shmem_kv.empty(HEAP * 3 // 4, np.int8))

    def test_that_cannot_be_freed_are_named(self):
        array = shmem_kv.empty(5)
        view = array[2:]
        shmem_kv.free(view)
        self.assertFalse(shmem_kv.is_symmetric(array))
        with self.assertRaisesRegex(ValueError, "was freed before"):
            shmem_kv.free(array)
        with self.assertRaisesRegex(ValueError, r"not from empty\(\) or zeros\(\)"):
            shmem_kv.free(np.zeros(3))

    def test_an_arena_frees_what_it_made(self):
        for _ in range(5):
            with shmem_kv.Arena() as arena:
                arena.empty(HEAP // 2, np.int8)
                arena.zeros(HEAP // 4, np.int8)

    def test_an_array_without_references_keeps_its_memory_taken(self):
        shmem_kv.empty(HEAP * 3 // 4, np.int8)
        gc.collect()
        with self.assertRaises(MemoryError):
            shmem_kv.empty(HEAP * 3 // 4, np.int8)


class AfterTheEnd(PeTest):
    def test_arrays_keep_their_contents_and_cannot_be_used_in_calls(self):
        arrays = [shmem_kv.empty((100 + i, 1000), np.int32) for i in range(5)]
        for i, array in enumerate(arrays):
            array[:] = 10 * self.me + i
        freed = shmem_kv.empty(100, np.int8)
        shmem_kv.free(freed)
        view = arrays[4][50:]
        shmem_kv.finalize()
        self.assertTrue(all((array == 10 * self.me + i).all() for i, array in enumerate(arrays)))
        freed[:] = 1  # not given to another array
        arrays[2][:] = 77
        del arrays[3:]
        gc.collect()
        self.assertTrue((view == 10 * self.me + 4).all())
        with self.assertRaisesRegex(RuntimeError, "free: the library does not run"):
            shmem_kv.free(arrays[0])

        shmem_kv.init(HEAP)
        again = shmem_kv.zeros((500, 1000), np.int32)
        self.assertTrue((arrays[2] == 77).all() and not again.any())
        self.assertFalse(shmem_kv.is_symmetric(arrays[2]))
        with self.assertRaisesRegex(ValueError, "before the last finalize"):
            shmem_kv.free(arrays[0])
        shmem_kv.finalize()
        self.assertFalse(again.any())
        del array, arrays, view, freed, again
        gc.collect()
        with open("/proc/self/maps") as maps:  # what oshrun reads when this process has ended stays
            self.assertEqual([line for line in maps if "memfd:" in line and "memfd:oshrun-ends" not in line], [])


class Others(PeTest):
    def test_run_while_a_call_waits(self):
        path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"shmem_kv_test_{os.getppid()}")
        if self.me == 0:
            waits = threading.Thread(target=shmem_kv.barrier_all)
            waits.start()
            open(path, "w").close()  # lets the other PEs call it
            waits.join()
            os.remove(path)
        else:
            while not os.path.exists(path):
                time.sleep(0.001)
            shmem_kv.barrier_all()

    def test_a_forked_child_is_not_a_pe(self):
        array = shmem_kv.zeros(3)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                shmem_kv.free(array)
            except RuntimeError as error:
                status = 0 if "a child of a PE" in str(error) else 2
            os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(subprocess.run(["true"]).returncode, 0)

    def test_are_a_team(self):
        team = shmem_kv.team_split_strided(shmem_kv.TEAM_WORLD, 0, 2, 2)
        if self.me == 1:
            self.assertEqual(team, -1)
            with self.assertRaisesRegex(ValueError, "this PE is not in team"):
                shmem_kv.my_pe(team)
        else:
            self.assertEqual((shmem_kv.my_pe(team), shmem_kv.n_pes(team)), (self.me // 2, 2))
            shmem_kv.barrier(team)
            shmem_kv.team_destroy(team)
        with self.assertRaisesRegex(ValueError, "name no PEs of the parent"):
            shmem_kv.team_split_strided(shmem_kv.TEAM_WORLD, 0, 1, 99)


if __name__ == "__main__":
    main()

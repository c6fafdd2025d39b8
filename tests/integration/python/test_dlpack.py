# SPDX-License-Identifier: Apache-2.0
"""Arrays of types that NumPy lacks, and tensors of torch, both ways by DLPack; caches of them."""

import gc
import unittest
import weakref

import numpy as np
import shmem_kv
from pes import PeTest, main
from shmem_kv import Array, Cache, KVShuffle, Operator, Plan, _exchange_core

try:
    import torch
except ImportError:
    torch = None

BLOCKS, BLOCK = 6, (2, 4, 8)
FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")


def dlpack_of_torch_has(dtype):
    try:
        torch.zeros(1, dtype=dtype).__dlpack__()
    except (BufferError, RuntimeError):
        return False
    return True


def ways_to_torch(dtype):
    """What makes a tensor of an array of ours. The DLPack of torch 2.6 has all types but float8."""
    known = dlpack_of_torch_has(dtype)
    assert known or "float8" in str(dtype), dtype
    return [shmem_kv.to_torch] + [torch.from_dlpack] * known


class Arrays(PeTest):
    def test_of_extra_types_have_dlpacks_codes(self):
        for name, code, bits in (
            ("bfloat16", 4, 16),
            ("float8_e3m4", 7, 8),
            ("float8_e4m3", 8, 8),
            ("float8_e4m3b11fnuz", 9, 8),
            ("float8_e4m3fn", 10, 8),
            ("float8_e4m3fnuz", 11, 8),
            ("float8_e5m2", 12, 8),
            ("float8_e5m2fnuz", 13, 8),
            ("float8_e8m0fnu", 14, 8),
        ):
            array = shmem_kv.zeros((3, 5), name)
            self.assertEqual((array.shape, array.dtype, array.itemsize, len(array)), ((3, 5), name, bits // 8, 3))
            self.assertEqual(array.nbytes, 15 * bits // 8)
            taken = _exchange_core.Imported(array.__dlpack__())
            self.assertEqual((taken.code, taken.bits, taken.shape, taken.on_cpu), (code, bits, [3, 5], True))
            array.numpy()[1, 2] = 77
            again = shmem_kv.from_dlpack(array)
            self.assertIsInstance(again, Array)
            self.assertEqual((again.dtype, again.numpy()[1, 2], again.numpy().sum()), (name, 77, 77))
            self.assertTrue(shmem_kv.is_symmetric(array) and shmem_kv.is_symmetric(again))
            shmem_kv.free(again)
            with self.assertRaisesRegex(ValueError, "freed before"):
                shmem_kv.free(array)

    def test_a_capsule_is_taken_once_or_ends_by_itself(self):
        array = shmem_kv.zeros(4, "bfloat16")
        capsule = array.__dlpack__()
        _exchange_core.Imported(capsule)
        with self.assertRaisesRegex(ValueError, "no new capsule"):
            _exchange_core.Imported(capsule)
        for _ in range(100):
            array.__dlpack__()
        there = weakref.ref(array)
        del array
        gc.collect()
        self.assertIsNone(there())

    def test_of_numpy_go_both_ways(self):
        array = shmem_kv.zeros((2, 3), np.int32)
        view = np.from_dlpack(array)
        array[1, 1] = 5
        self.assertEqual(view[1, 1], 5)
        taken = shmem_kv.from_dlpack(array)
        taken[0, 0] = 6
        self.assertEqual(array[0, 0], 6)
        self.assertEqual((taken.dtype, taken.shape, taken[1, 1]), (np.int32, (2, 3), 5))
        with self.assertRaisesRegex(ValueError, "not contiguous"):
            shmem_kv.from_dlpack(array.T)

        class OnDevice:
            def __dlpack_device__(self):
                return 2, 0

        with self.assertRaisesRegex(ValueError, "k: from_dlpack: the array is in the memory of a device"):
            OnDevice.__dlpack__ = None
            Cache(OnDevice(), format="latent")

    def test_outlive_the_library(self):
        array = shmem_kv.zeros((2, 3), "float8_e5m2")
        array.numpy()[:] = 3
        taken = shmem_kv.from_dlpack(array)
        del array
        shmem_kv.finalize()
        gc.collect()
        self.assertEqual(taken.numpy().sum(), 18)


class Caches(PeTest):
    def check(self, k, v, bits):
        """Executes a plan on caches whose bits are `bits(k)` and `bits(v)`."""
        for which, one in enumerate((k, v)):
            bits(one)[:] = (np.arange(bits(one).size).reshape(bits(one).shape) % 50) + 100 * which + self.me
        expected = [bits(one)[1] - self.me + (self.me - 1) % self.pes for one in (k, v)]
        cache = Cache(k, v)
        with Operator() as operator:
            operator.shuffle(Plan([(pe, 1, (pe + 1) % self.pes, 2) for pe in range(self.pes)]), cache)
        for one, block in zip((k, v), expected):
            self.assertTrue((bits(one)[2] == block).all())
        return cache

    def test_of_extra_types(self):
        for name in ("bfloat16", "float8_e4m3fn"):
            k, v = (shmem_kv.zeros((BLOCKS, *BLOCK), name) for _ in range(2))
            cache = self.check(k, v, Array.numpy)
            self.assertEqual((cache.dtype, cache.block_bytes), (name, 2 * 64 * k.itemsize))
            self.assertIn(name, repr(cache))
        with self.assertRaisesRegex(ValueError, "v is float16 of shape .*, but k is bfloat16"):
            Cache(shmem_kv.zeros((BLOCKS, *BLOCK), "bfloat16"), shmem_kv.zeros((BLOCKS, *BLOCK), np.float16))

    def check_tensors(self, dtype, to_torch):
        arrays = [shmem_kv.zeros((BLOCKS, *BLOCK), dtype) for _ in range(2)]
        k, v = (to_torch(one) for one in arrays)
        self.assertEqual((k.dtype, k.shape), (dtype, (BLOCKS, *BLOCK)))
        del arrays
        gc.collect()
        whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[k.element_size()]
        cache = self.check(k, v, lambda tensor: tensor.view(whole).numpy())
        self.assertEqual("torch." + cache.dtype, str(dtype))
        self.assertTrue(shmem_kv.is_symmetric(k))
        shmem_kv.free(k)
        shmem_kv.free(v)
        with self.assertRaisesRegex(ValueError, "not from empty"):
            shmem_kv.free(torch.zeros(3))

    @unittest.skipIf(torch is None, "no torch")
    def test_of_tensors_of_float8(self):
        if not hasattr(torch, "float8_e5m2"):
            with self.assertRaisesRegex(TypeError, "has no type float8_e5m2"):
                shmem_kv.to_torch(shmem_kv.zeros(4, "float8_e5m2"))
            self.skipTest("torch has no float8")
        tensor = torch.arange(6, dtype=torch.uint8).view(torch.float8_e5m2).reshape(2, 3)
        taken = shmem_kv.from_dlpack(tensor)
        self.assertEqual((type(taken), taken.dtype, taken.shape), (Array, "float8_e5m2", (2, 3)))
        taken.numpy()[1, 1] = 60
        self.assertEqual(tensor[1, 1].float(), 1)
        again = shmem_kv.to_torch(taken)
        self.assertEqual((again.dtype, again.data_ptr()), (tensor.dtype, tensor.data_ptr()))
        with self.assertRaisesRegex(ValueError, "k: from_dlpack: the array is not contiguous"):
            Cache(torch.zeros((BLOCKS, *BLOCK), dtype=tensor.dtype).transpose(1, 2), format="latent")
        with self.assertRaisesRegex((BufferError, RuntimeError), "require"):
            shmem_kv.from_dlpack(tensor.requires_grad_())

    @unittest.skipIf(torch is None, "no torch")
    def test_go_to_torch_in_any_shape(self):
        for name in ("bfloat16", "int32", "bool"):
            for shape in ((), (0, 3), (2, 3)):
                array = shmem_kv.zeros(shape, name)
                tensor = shmem_kv.to_torch(array)
                self.assertEqual((str(tensor.dtype), tuple(tensor.shape)), ("torch." + name, shape))
                shmem_kv.free(array)

    @unittest.skipIf(torch is None, "no torch")
    def test_of_tensors_of_a_type_that_numpy_does_not_have(self):
        pairs = torch.from_numpy(shmem_kv.zeros((BLOCKS, 4, 16), np.float16)).view(torch.complex32)
        self.assertEqual(Cache(pairs, format="latent").dtype, "complex32")

    @unittest.skipIf(torch is None, "no torch")
    def test_of_tensors(self):
        types = [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.int64]
        types += [getattr(torch, name) for name in FLOAT8 if hasattr(torch, name)]
        for dtype in types:
            for way in ways_to_torch(dtype):
                with self.subTest(dtype=dtype, way=way):
                    self.check_tensors(dtype, way)
        with self.assertRaisesRegex(ValueError, "k is not in symmetric memory"):
            Cache(torch.zeros((BLOCKS, *BLOCK), dtype=torch.bfloat16), format="latent")
        with self.assertRaisesRegex(ValueError, "k: from_dlpack: the array is not contiguous"):
            Cache(torch.zeros((BLOCKS, *BLOCK), dtype=torch.bfloat16).transpose(1, 2), format="latent")
        flags = torch.from_numpy(shmem_kv.zeros((BLOCKS, 4, 8), bool))  # torch 1.13 exports no bool
        self.assertEqual(Cache(flags, format="latent").dtype, "bool")

    @unittest.skipIf(torch is None, "no torch")
    def test_of_tensors_by_ascends_names(self):
        k, v = (torch.from_dlpack(shmem_kv.zeros((BLOCKS, *BLOCK), torch.bfloat16)) for _ in range(2))
        k += 1 + self.me
        operator = KVShuffle()
        table = torch.tensor([(pe ^ 1, pe & 1) if pe ^ 1 < self.pes else (pe, 1) for pe in range(self.pes)])
        mine = [3] if self.me % 2 == 0 and self.me + 1 < self.pes else []
        operator.compute(table, k, v, torch.tensor(mine, dtype=torch.int64), torch.tensor(mine, dtype=torch.int64))
        operator.close()
        self.assertEqual(k[3].float().mean(), 1 + (self.me & ~1 if (self.me | 1) < self.pes else self.me))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Tensors in symmetric memory: calls on them give what others give, and copy nothing to the library."""

import gc
import os
import unittest

import numpy as np
import torch
from ranks import RanksTest, dist

import shmem_kv
import shmem_torch

COUNT = 300_000  # more than a stage takes at once


def symmetric(like, fill=True):
    tensor = shmem_torch.empty(like.shape, like.dtype)
    assert (tensor.view(torch.uint8) == 0).all() and tensor.dtype == like.dtype
    return tensor.copy_(like) if fill else tensor


def part(rank, count=COUNT, dtype=torch.float32):
    return ((torch.arange(count) + rank) % 7 + 1).to(dtype)


def direct(call, calls=1):
    """Makes so many calls, of which none may copy anything to the library."""
    before = shmem_torch.statistics()
    call()
    after = shmem_torch.statistics()
    assert after.staged_bytes == before.staged_bytes, f"{after.staged_bytes - before.staged_bytes} bytes were copied"
    assert after.direct_calls == before.direct_calls + calls, f"{before} and then {after}"


def messages(rank, size):
    """Long tensors that are sent are copied by the receiver, also if it asks for another one first."""
    tensor = symmetric(part(rank))
    before = shmem_torch.statistics().direct_messages
    works = [dist.isend(tensor, (rank + 1) % size, tag=1), dist.isend(tensor[1000:], (rank + 1) % size, tag=2)]
    source = (rank - 1) % size
    for tag, expected in ((2, part(source)[1000:]), (1, part(source))):
        got = torch.empty_like(expected)
        dist.recv(got, source, tag=tag)
        same(got, expected)
    for work in works:
        work.wait()
    assert shmem_torch.statistics().direct_messages == before + 2


def same(got, expected):
    assert torch.equal(got, expected), f"{got} is not {expected}"


def collectives(rank, size):
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.float64):
        total = sum(part(i, dtype=torch.int64) for i in range(size))
        tensor = symmetric(part(rank, dtype=dtype))
        direct(lambda: dist.all_reduce(tensor))
        same(tensor, total.to(dtype))
        tensor.copy_(part(rank, dtype=dtype))
        direct(lambda: dist.all_reduce(tensor, dist.ReduceOp.MAX))
        same(tensor, torch.stack([part(i, dtype=dtype) for i in range(size)]).max(0).values)
        tensor.copy_(part(rank, dtype=dtype))
        direct(lambda: dist.reduce(tensor, size - 1))
        same(tensor, total.to(dtype) if rank == size - 1 else part(rank, dtype=dtype))
        tensor.copy_(part(rank, dtype=dtype))
        direct(lambda: dist.broadcast(tensor, size - 1))
        same(tensor, part(size - 1, dtype=dtype))
    tensor = symmetric(part(rank).reshape(-1, 100))
    expected = sum(part(i).reshape(-1, 100) for i in range(size))
    for begin, end in ((1000, 3000), (0, 17)):  # parts of it
        direct(lambda: dist.all_reduce(tensor[begin:end]))
        same(tensor[begin:end], expected[begin:end])
    same(tensor[17:1000], part(rank).reshape(-1, 100)[17:1000])
    mean = symmetric(part(rank))
    direct(lambda: dist.all_reduce(mean, dist.ReduceOp.AVG))
    torch.testing.assert_close(mean, sum(part(i) for i in range(size)) / size)


def movement(rank, size):
    given = symmetric(part(rank))
    outputs = [torch.zeros(COUNT) for _ in range(size)]
    direct(lambda: dist.all_gather(outputs, given))
    for i in range(size):
        same(outputs[i], part(i))
    whole = symmetric(torch.zeros(size, COUNT))
    whole[rank] = part(rank)
    direct(lambda: dist.all_gather_into_tensor(whole, whole[rank]))  # in place
    same(whole, torch.stack([part(i) for i in range(size)]))
    direct(lambda: dist.gather(given, outputs if rank == 0 else None))
    inputs = symmetric(torch.cat([part(rank + i) for i in range(size)]))
    output = torch.zeros(COUNT)
    direct(lambda: dist.scatter(output, list(inputs.chunk(size)) if rank == 1 else None, 1))
    same(output, part(1 + rank))
    direct(lambda: dist.reduce_scatter_tensor(output, inputs))
    same(output, sum(part(i + rank) for i in range(size)))
    direct(lambda: dist.reduce_scatter(inputs[rank * COUNT : (rank + 1) * COUNT], list(inputs.chunk(size))))
    same(inputs[rank * COUNT : (rank + 1) * COUNT], sum(part(i + rank) for i in range(size)))
    inputs.copy_(torch.cat([part(10 * rank + i) for i in range(size)]))
    output = torch.zeros(size * COUNT)
    direct(lambda: dist.all_to_all_single(output, inputs))
    same(output, torch.cat([part(10 * i + rank) for i in range(size)]))
    # In the tensors that are given: not possible where they are.
    before = shmem_torch.statistics()
    dist.all_to_all(list(inputs.chunk(size)), list(inputs.chunk(size)))
    after = shmem_torch.statistics()
    same(inputs, torch.cat([part(10 * i + rank) for i in range(size)]))
    assert after.direct_calls == before.direct_calls and after.staged_bytes > before.staged_bytes


def other_tensors(rank, size):
    """One rank's tensor is an ordinary one, or not contiguous."""
    shared = shmem_torch.empty(COUNT)
    tensor = torch.zeros(COUNT) if rank == 0 else shared
    tensor.copy_(part(rank))
    dist.all_reduce(tensor)
    same(tensor, sum(part(i) for i in range(size)))
    shared[::2] = part(rank, COUNT // 2)
    dist.all_reduce(shared[::2])
    same(shared[::2].contiguous(), sum(part(i, COUNT // 2) for i in range(size)))
    group = dist.new_group(list(range(size)))  # a group has no memory of another one
    shared.copy_(part(rank))
    before = shmem_torch.statistics(group)
    dist.all_reduce(shared, group=group)
    same(shared, sum(part(i) for i in range(size)))
    assert shmem_torch.statistics(group).direct_calls == before.direct_calls == 0
    mine = shmem_torch.empty(COUNT, group=group).copy_(part(rank))
    dist.all_reduce(mine, group=group)
    same(mine, shared)
    assert shmem_torch.statistics(group).direct_calls == 1
    dist.destroy_process_group(group)
    del group
    same(mine, shared)  # outlives its group


def shapes(rank, size):
    for shape in ((), 0, (0, 3), (2, 0), (5,), [3, 4], torch.Size((2, 2, 2))):
        tensor = shmem_torch.empty(shape, torch.bfloat16)
        assert tensor.shape == torch.empty(shape).shape and tensor.dtype == torch.bfloat16 and tensor.is_contiguous()
        tensor += rank
        dist.all_reduce(tensor)
        assert (tensor == size * (size - 1) // 2).all()
    assert shmem_torch.empty(3).dtype == torch.float32
    parameter = torch.nn.Parameter(shmem_torch.empty((30, 40)).normal_())
    (parameter * 2).sum().backward()
    assert (parameter.grad == 2).all()
    for wrong, error in (
        (lambda: shmem_torch.empty(-1), ValueError),
        (lambda: shmem_torch.empty((1 << 40, 1 << 40)), ValueError),
        (lambda: shmem_torch.empty(3, np.float32), TypeError),
    ):
        try:
            wrong()
        except error:
            continue
        raise AssertionError("no exception")
    try:
        shmem_torch.empty(10 + 2000 * (rank == 1))
    except RuntimeError as error:
        assert "rank 1 for 8040" in str(error), error
    else:
        raise AssertionError("different sizes were accepted")
    try:
        shmem_torch.empty(1 << 50)
    except RuntimeError as error:
        assert "more than the" in str(error), error
    dist.barrier()


def between_libraries(rank, size):
    """By DLPack: the memory is the same on both sides."""
    tensor = symmetric(part(rank))
    array = np.from_dlpack(tensor)
    tensor[0] = 77
    assert array[0] == 77
    back = torch.from_dlpack(torch.utils.dlpack.to_dlpack(tensor))
    del tensor
    gc.collect()
    back.copy_(part(rank))
    direct(lambda: dist.all_reduce(back))
    same(torch.tensor(array), sum(part(i) for i in range(size)))


def small_floats(rank, size):
    """bfloat16, and float8 where torch has it: moved where they are, and shared with NumPy and shmem_kv."""
    names = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
    for dtype in (getattr(torch, name) for name in names if hasattr(torch, name)):
        tensor = shmem_torch.empty((300, 1000), dtype)
        bits = tensor.view(torch.uint8)
        assert tensor.dtype == dtype and tensor.shape == (300, 1000) and (bits == 0).all()
        expected = part(1, bits.numel(), torch.uint8).reshape(bits.shape)
        bits.copy_(part(rank, bits.numel(), torch.uint8).reshape(bits.shape))
        direct(lambda: dist.broadcast(tensor, 1))
        same(bits, expected)
        array = np.from_dlpack(bits)  # NumPy does not write to it
        same(torch.tensor(array), expected)
        bits[0, 0] = 77
        back = torch.from_dlpack(torch.utils.dlpack.to_dlpack(bits)).view(dtype)
        assert back.data_ptr() == tensor.data_ptr() and back.view(torch.uint8)[0, 0] == 77
        # PyTorch 2.6 has no DLPack of float8.
        if dtype == torch.bfloat16:
            shared = shmem_kv.from_dlpack(tensor)
            assert shared.dtype == "bfloat16" and shared.shape == (300, 1000)
            back = shmem_kv.to_torch(shared)
            assert back.dtype == dtype and back.data_ptr() == tensor.data_ptr()
        del tensor, bits
        dist.barrier()
        assert array[0, 0] == 77  # shares the memory, which stays
        direct(lambda: dist.broadcast(back, 0))


def as_a_cache(rank, size):
    """Blocks in a tensor of a group are a cache of shmem_kv once they are registered."""
    ids = [shmem_kv.unique_id() if rank == 0 else None]
    dist.broadcast_object_list(ids, 0)
    tensor = shmem_torch.empty((4, 2, 8), torch.bfloat16).fill_(rank + 1)
    with shmem_kv.init(unique_id=ids[0], my_pe=rank, n_pes=size), shmem_kv.Operator() as operator:
        try:
            shmem_kv.Cache(tensor, format="latent")
        except ValueError as error:
            assert "not in symmetric memory" in str(error), error
        else:
            raise AssertionError("the memory of a group is not the library's")
        shmem_kv.register(tensor)
        operator.shuffle(shmem_kv.Plan([(0, 3, 1, 2)]), shmem_kv.Cache(tensor, format="latent"))
        shmem_kv.barrier_all()
        assert (tensor[2] == (1 if rank < 2 else rank + 1)).all() and (tensor[3] == rank + 1).all()
        shmem_kv.unregister(tensor)
    dist.all_reduce(tensor)


def mapped_kib():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("RssShmem")).split()[1])


def freed(rank, size):
    shmem_torch.empty(1)
    before = mapped_kib()
    for _ in range(10):
        tensor = shmem_torch.empty((16, 1 << 20), torch.uint8)
        tensor += 1
        dist.all_reduce(tensor)
        del tensor
    dist.barrier()
    assert mapped_kib() < before + (size + 1) * (16 << 10), (before, mapped_kib())
    # In the order of calls that are not waited for.
    works = [dist.all_reduce(torch.ones(COUNT), async_op=True) for _ in range(3)]
    tensor = shmem_torch.empty(COUNT).fill_(1)
    works.append(dist.all_reduce(tensor, async_op=True))
    del tensor
    for work in works:
        work.wait()
    # A forked process drops its copies, as workers of a DataLoader do.
    tensor = shmem_torch.empty(COUNT).fill_(3)
    child = os.fork()
    if child == 0:
        del tensor
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    assert (tensor == 3).all()


def with_gloo(rank, size):
    group = dist.new_group(list(range(size)), backend="gloo")
    try:
        shmem_torch.empty(3, group=group)
    except ValueError as error:
        assert "gloo" in str(error), error
    else:
        raise AssertionError("gloo gave symmetric memory")


BODIES = [collectives, movement, messages, other_tensors, shapes, between_libraries]
BODIES += [small_floats, as_a_cache, freed, with_gloo]


class Symmetric(RanksTest):
    def test_two_ranks(self):
        self.run_all(2, BODIES)

    def test_three_ranks(self):
        self.run_all(3, BODIES)


if __name__ == "__main__":
    unittest.main(verbosity=0)

# SPDX-License-Identifier: Apache-2.0
"""Each collective of torch.distributed: results, dtypes, sizes, and tensors that are empty or not contiguous."""

import os
import time
import unittest

import torch
from ranks import RanksTest, dist

REAL = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
WHOLE = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
SIZES = [0, 1, 100, 5000, 400_000]


def values(rank, count, dtype):
    """Small whole numbers: sums of them are exact in any dtype."""
    return ((torch.arange(count) + rank) % 5 + 1).to(dtype)


def same(got, expected, what):
    assert got.dtype == expected.dtype, f"{what}: {got.dtype}"
    assert torch.equal(got, expected), f"{what}: {got} is not {expected}"


def combined(parts, dtype):
    """What each operation makes of whole numbers as that dtype."""
    expected = {dist.ReduceOp.SUM: parts.sum(0), dist.ReduceOp.PRODUCT: parts.prod(0)}
    expected |= {dist.ReduceOp.MIN: parts.amin(0), dist.ReduceOp.MAX: parts.amax(0)}
    if dtype in WHOLE:
        band, bor, bxor = parts[0].clone(), parts[0].clone(), parts[0].clone()
        for part in parts[1:]:
            band, bor, bxor = band & part, bor | part, bxor ^ part
        expected |= {dist.ReduceOp.BAND: band, dist.ReduceOp.BOR: bor, dist.ReduceOp.BXOR: bxor}
    return expected


def all_reduce(rank, size):
    for dtype in REAL + WHOLE:
        parts = torch.stack([values(i, 70, torch.int64) for i in range(size)])
        expected = combined(parts, dtype)
        for operation, result in expected.items():
            tensor = values(rank, 70, dtype)
            dist.all_reduce(tensor, operation)
            same(tensor, result.to(dtype), f"all_reduce {operation} {dtype}")
        if dtype in REAL:
            tensor = values(rank, 70, dtype)
            dist.all_reduce(tensor, dist.ReduceOp.AVG)
            torch.testing.assert_close(tensor, (parts.sum(0).double() / size).to(dtype))
    for count in SIZES:
        tensor = values(rank, count, torch.float32)
        dist.all_reduce(tensor)
        same(tensor, sum(values(i, count, torch.float32) for i in range(size)), f"all_reduce of {count}")
    flags = torch.tensor([rank == 0, True, False])
    dist.all_reduce(flags)
    same(flags, torch.tensor([True, True, False]), "all_reduce of bool")
    pair = torch.complex(values(rank, 9, torch.float32), values(rank + 1, 9, torch.float32))
    dist.all_reduce(pair)
    same(pair.real.contiguous(), sum(values(i, 9, torch.float32) for i in range(size)), "all_reduce of complex")


def reductions(rank, size):
    """Of all kinds, operations and dtypes. Each rank gives a row for each rank."""
    for dtype in REAL + WHOLE:
        given = torch.stack([torch.stack([values(i + 2 * j, 70, torch.int64) for j in range(size)]) for i in range(size)])
        expected = {operation: one.to(dtype) for operation, one in combined(given, dtype).items()}
        if dtype in REAL:
            expected[dist.ReduceOp.AVG] = (given.sum(0).double() / size).to(dtype)
        mine = given[rank].to(dtype)
        for operation, result in expected.items():
            check = torch.testing.assert_close if operation == dist.ReduceOp.AVG else same_values
            for root in (0, size - 1):
                tensor = mine.clone()
                dist.reduce(tensor, root, operation)
                check(tensor, result if rank == root else mine)
            output = torch.zeros(70, dtype=dtype)
            dist.reduce_scatter(output, list(mine.unbind()), operation)
            check(output, result[rank])
            output = torch.zeros(70, dtype=dtype)
            dist.reduce_scatter_tensor(output, mine.flatten(), operation)
            check(output, result[rank])
            tensors = [mine[0].clone(), mine.clone()]
            dist.all_reduce_coalesced(tensors, operation)
            check(tensors[0], result[0])
            check(tensors[1], result)
    for dtype in (*REAL, *WHOLE, torch.bool, torch.complex64, torch.complex128):
        mine = values(rank, 70, torch.int64).to(dtype)
        output = torch.zeros(70 * size, dtype=dtype)
        dist.all_gather_into_tensor(output, mine)
        same(output, torch.cat([values(i, 70, torch.int64).to(dtype) for i in range(size)]), "all_gather_into_tensor")
        output = torch.zeros(size, 3, dtype=dtype)
        dist.all_to_all_single(output, values(rank, 3 * size, torch.int64).to(dtype).reshape(size, 3))
        expected = [values(i, 3 * size, torch.int64).to(dtype).reshape(size, 3)[rank] for i in range(size)]
        same(output, torch.stack(expected), "all_to_all_single")
    for dtype in (torch.complex64, torch.complex128):
        numbers = [torch.complex(values(i, 6, torch.float64), values(i + 1, 6, torch.float64)).to(dtype) for i in range(size)]
        tensor = numbers[rank].clone()
        dist.reduce(tensor, 0)
        same(tensor, sum(numbers) if rank == 0 else numbers[rank], "reduce of complex")
        output = torch.zeros(6, dtype=dtype)
        dist.reduce_scatter(output, [numbers[rank]] * size)
        same(output, sum(numbers), "reduce_scatter of complex")
        # PyTorch 2 gives it as pairs.
        dist.reduce_scatter_tensor(output, torch.cat([numbers[rank]] * size))
        same(output, sum(numbers), "reduce_scatter_tensor of complex")


def not_numbers(rank, size):
    """The maximum and minimum with a NaN, whichever rank has it, are NaN on all ranks, as those of torch are."""
    for dtype in REAL:
        for count in (7, 70, 100_000):
            for operation in (dist.ReduceOp.MAX, dist.ReduceOp.MIN):
                # Element i of rank i; another one on all ranks.
                tensor = torch.full((count,), float(rank), dtype=dtype)
                tensor[rank] = float("nan")
                tensor[size + 1] = float("nan")
                expected = torch.zeros(count, dtype=torch.bool)
                expected[:size] = expected[size + 1] = True
                dist.all_reduce(tensor, operation)
                assert torch.equal(torch.isnan(tensor), expected), (dtype, count, operation, tensor[:9])
                assert tensor[size] == (size - 1 if operation == dist.ReduceOp.MAX else 0)


def same_values(got, expected):
    same(got, expected, "a reduction")


def newer_dtypes(rank, size):
    """Types that only newer versions of torch have: moved, but not combined."""
    for name in ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"):
        if not hasattr(torch, name):
            continue
        bits = values(rank, 48, torch.uint8)
        mine = bits.view(getattr(torch, name))
        outputs = [torch.zeros(48, dtype=torch.uint8).view(mine.dtype) for _ in range(size)]
        dist.all_gather(outputs, mine)
        for i, output in enumerate(outputs):
            same(output.view(torch.uint8), values(i, 48, torch.uint8), f"all_gather of {name}")
        dist.broadcast(mine, 0)
        same(mine.view(torch.uint8), values(0, 48, torch.uint8), f"broadcast of {name}")
        try:
            dist.all_reduce(mine)
        except (RuntimeError, ValueError) as error:
            assert "cannot be combined" in str(error), error
        else:
            raise AssertionError(f"{name} was summed")
        dist.barrier()


def rounding(rank, size):
    """Results of 16-bit numbers are rounded to nearest, infinities and subnormal numbers included."""
    for dtype, product in ((torch.float16, False), (torch.float16, True), (torch.bfloat16, False), (torch.bfloat16, True)):
        generator = torch.Generator().manual_seed(7)
        bits = torch.randint(-(2**15), 2**15, (size, 4096), generator=generator).to(torch.int16)
        parts = bits.view(dtype)
        tensor = parts[rank].clone()
        dist.all_reduce(tensor, dist.ReduceOp.PRODUCT if product else dist.ReduceOp.SUM)
        expected = parts[0].float()
        for part in parts[1:]:
            expected = (expected * part.float() if product else expected + part.float()).to(dtype).float()
        torch.testing.assert_close(tensor.float(), expected, rtol=0, atol=0, equal_nan=True)


def strides(rank, size):
    """Views that are not contiguous give and get the same elements as others."""
    base = torch.zeros(40, 30)
    view = base.t()[::2]
    view.copy_(values(rank, 600, torch.float32).reshape(15, 40))
    dist.all_reduce(view)
    total = sum(values(i, 600, torch.float32) for i in range(size)).reshape(15, 40)
    same(view.contiguous(), total, "all_reduce of a view")
    assert base.t()[1::2].abs().sum() == 0, "a view's neighbours were changed"
    outputs = [torch.zeros(12, 2)[:, 0] for _ in range(size)]
    dist.all_gather(outputs, torch.arange(24.0)[::2] + rank)
    for i, output in enumerate(outputs):
        same(output.contiguous(), torch.arange(24.0)[::2] + i, "all_gather to views")
    views_of_each_call(rank, size)
    column = torch.zeros(6, 4)[:, 1]
    if rank == 0:
        dist.send(torch.arange(12.0)[::2], 1)
    elif rank == 1:
        dist.recv(column, 0)
        same(column.contiguous(), torch.arange(12.0)[::2], "recv to a view")
    parameter = torch.nn.Parameter(torch.full((3, 5), float(rank)))
    dist.all_reduce(parameter.data)
    dist.broadcast(parameter, 1)
    assert (parameter == size * (size - 1) / 2).all()


def views_of_each_call(rank, size):
    def view(tensor):
        """The same elements, spread out."""
        base = torch.full((*tensor.shape, 2), -1.0)
        spread = base[..., 0]
        spread.copy_(tensor)
        bases.append(base)
        return spread

    for count in (12, 30_000):
        bases = []
        parts = [values(i, count, torch.float32) for i in range(size)]
        whole = torch.cat(parts).reshape(size, count)
        blocks = [values(rank + i, count, torch.float32) for i in range(size)]  # for rank i
        total = sum(parts)
        got = view(parts[rank])
        dist.broadcast(got, size - 1)
        same(got, parts[size - 1], "broadcast of a view")
        got = view(parts[rank])
        dist.reduce(got, 0)
        same(got, total if rank == 0 else parts[rank], "reduce of a view")
        got = view(torch.zeros(size, count))
        dist.all_gather_into_tensor(got, view(parts[rank]))
        same(got, whole, "all_gather_into_tensor to a view")
        got = [view(torch.zeros(count)) for _ in range(size)]
        dist.gather(view(parts[rank]), got if rank == 0 else None, 0)
        same(torch.stack(got), whole if rank == 0 else torch.zeros(size, count), "gather to views")
        got = view(torch.zeros(count))
        dist.scatter(got, [view(one) for one in blocks] if rank == 0 else None, 0)
        same(got, values(rank, count, torch.float32), "scatter of views")
        got = view(torch.zeros(count))
        dist.reduce_scatter(got, [view(one) for one in parts])
        same(got, size * parts[rank], "reduce_scatter of views")
        got = view(torch.zeros(count))
        dist.reduce_scatter_tensor(got, view(whole))
        same(got, size * parts[rank], "reduce_scatter_tensor of a view")
        expected = torch.stack([values(i + rank, count, torch.float32) for i in range(size)])
        got = view(torch.zeros(size, count))
        dist.all_to_all_single(got, view(torch.stack(blocks)))
        same(got, expected, "all_to_all_single of a view")
        got = [view(torch.zeros(count)) for _ in range(size)]
        dist.all_to_all(got, [view(one) for one in blocks])
        same(torch.stack(got), expected, "all_to_all of views")
        got = [[view(torch.zeros(count)), view(torch.zeros(2))] for _ in range(size)]
        dist.all_gather_coalesced(got, [view(parts[rank]), view(torch.full((2,), float(rank)))])
        same(torch.stack([one for one, _ in got]), whole, "all_gather_coalesced of views")
        same(torch.stack([one for _, one in got])[:, 0], torch.arange(float(size)), "all_gather_coalesced of views")
        assert all((base[..., 1] == -1).all() for base in bases), "a view's neighbours were changed"


def moving(rank, size):
    for count in SIZES:
        for root in range(size):
            tensor = values(rank, count, torch.int64)
            dist.broadcast(tensor, root)
            same(tensor, values(root, count, torch.int64), f"broadcast of {count}")
            tensor = values(rank, count, torch.float32)
            dist.reduce(tensor, root)
            if rank == root:
                same(tensor, sum(values(i, count, torch.float32) for i in range(size)), f"reduce of {count}")
            outputs = [torch.zeros(count) for _ in range(size)] if rank == root else None
            dist.gather(values(rank, count, torch.float32), outputs, root)
            for i in range(size if rank == root else 0):
                same(outputs[i], values(i, count, torch.float32), f"gather of {count}")
            inputs = [values(i, count, torch.float32) for i in range(size)] if rank == root else None
            tensor = torch.zeros(count)
            dist.scatter(tensor, inputs, root)
            same(tensor, values(rank, count, torch.float32), f"scatter of {count}")
        outputs = [torch.zeros(count, dtype=torch.int32) for _ in range(size)]
        dist.all_gather(outputs, values(rank, count, torch.int32))
        for i in range(size):
            same(outputs[i], values(i, count, torch.int32), f"all_gather of {count}")
        flat = torch.zeros(count * size)
        dist.all_gather_into_tensor(flat, values(rank, count, torch.float32))
        same(flat, torch.cat([values(i, count, torch.float32) for i in range(size)]), f"all_gather_into of {count}")
        inputs = [values(rank + i, count, torch.float32) for i in range(size)]
        output = torch.zeros(count)
        dist.reduce_scatter(output, inputs)
        total = sum(values(i + rank, count, torch.float32) for i in range(size))
        same(output, total, f"reduce_scatter of {count}")
        output = torch.zeros(count)
        dist.reduce_scatter_tensor(output, torch.cat(inputs))
        same(output, total, f"reduce_scatter_tensor of {count}")
        output = torch.zeros(count * size)
        dist.all_to_all_single(output, torch.cat([values(rank * 7 + i, count, torch.float32) for i in range(size)]))
        expected = torch.cat([values(i * 7 + rank, count, torch.float32) for i in range(size)])
        same(output, expected, f"all_to_all_single of {count}")
    splits = [[i + 2 * j for j in range(size)] for i in range(size)]  # from i to j
    given = [values(10 * rank + j, splits[rank][j] * 3, torch.float32).reshape(-1, 3) for j in range(size)]
    expected = [values(10 * i + rank, splits[i][rank] * 3, torch.float32).reshape(-1, 3) for i in range(size)]
    output = torch.zeros(sum(splits[i][rank] for i in range(size)), 3)
    dist.all_to_all_single(output, torch.cat(given), [splits[i][rank] for i in range(size)], splits[rank])
    same(output, torch.cat(expected), "all_to_all_single with splits")
    outputs = [torch.zeros_like(one) for one in expected]
    dist.all_to_all(outputs, given)
    for i in range(size):
        same(outputs[i], expected[i], "all_to_all")


def coalesced(rank, size):
    tensors = [values(rank, 3, torch.float32), values(rank, 10, torch.float32).reshape(2, 5)[:, ::2]]
    dist.all_reduce_coalesced(tensors)
    same(tensors[0], sum(values(i, 3, torch.float32) for i in range(size)), "all_reduce_coalesced")
    expected = sum(values(i, 10, torch.float32).reshape(2, 5)[:, ::2] for i in range(size))
    same(tensors[1].contiguous(), expected, "all_reduce_coalesced of a view")
    inputs = [values(rank, 4, torch.float32), values(rank, 6, torch.float32)]
    outputs = [[torch.zeros(4), torch.zeros(6)] for _ in range(size)]
    dist.all_gather_coalesced(outputs, inputs)
    for i in range(size):
        same(outputs[i][0], values(i, 4, torch.float32), "all_gather_coalesced")
        same(outputs[i][1], values(i, 6, torch.float32), "all_gather_coalesced")
    index = torch.tensor([[0, 2 + rank, 2 + rank]])
    sparse = torch.sparse_coo_tensor(index, torch.tensor([1.0, 2.0, 3.0]), (size + 3,))
    dist.all_reduce(sparse)
    dense = torch.zeros(size + 3)
    dense[0] = size
    dense[2 : 2 + size] = 5
    same(sparse.to_dense(), dense, "all_reduce of sparse tensors")


def objects(rank, size):
    everything = [None] * size
    dist.all_gather_object(everything, {"rank": rank, "data": "x" * (rank * 1000)})
    assert [one["rank"] for one in everything] == list(range(size))
    shared = [rank, "text"] if rank == 0 else [None, None]
    dist.broadcast_object_list(shared, 0)
    assert shared == [0, "text"]
    mine = [None]
    dist.scatter_object_list(mine, [f"for {i}" for i in range(size)] if rank == 0 else None, 0)
    assert mine == [f"for {rank}"]


def asynchronous(rank, size):
    tensors = [torch.full((50_000,), float(rank + i)) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    results = []
    future = works[5].get_future().then(lambda one: results.append(one.value()[0][0].item()))
    for work in reversed(works):
        work.wait()
        assert work.is_completed() and work.is_success()
    future.wait()
    assert results == [sum(i + 5 for i in range(size))], results
    for i, tensor in enumerate(tensors):
        assert (tensor == sum(rank + i for rank in range(size))).all()
    # A call that nobody waits for is made, too.
    tensor = torch.ones(3)
    work = dist.all_reduce(tensor, async_op=True)
    end = time.monotonic() + 60
    while not work.is_completed() and time.monotonic() < end:
        torch.zeros(1000).sum()
    assert work.is_completed() and tensor[0] == size


def messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    for count in (0, 1, 1000, 2_000_000):
        got = torch.zeros(count)
        operations = [
            dist.P2POp(dist.isend, values(rank, count, torch.float32), right),
            dist.P2POp(dist.irecv, got, left),
        ]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        same(got, values(left, count, torch.float32), f"messages of {count}")
    if rank == 0:
        sources = set()
        for _ in range(size - 1):
            got = torch.zeros(1)
            sources.add((dist.recv(got, tag=4), int(got)))
        assert sources == {(i, i) for i in range(1, size)}, sources
    else:
        dist.send(torch.full((1,), float(rank)), 0, tag=4)
    # A message and a collective call do not wait for each other.
    big = torch.full((1_000_000,), float(rank))
    if rank == 0:
        work = dist.isend(big, 1)
    if rank == 1:
        got = torch.zeros(1_000_000)
        dist.recv(got, 0)
        assert (got == 0).all()
    dist.barrier()
    if rank == 0:
        work.wait()


def futures_of_messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    for count in (3, 500_000):
        got = torch.zeros(2, count)[:, ::2]  # of a view, which is written before the future completes
        results = []
        received = dist.irecv(got, left).get_future()
        after = received.then(lambda one: results.append(one.value()[0].clone()))
        work = dist.isend(values(rank, got.numel(), torch.float32), right)
        sent = work.get_future()
        del work
        assert torch.equal(sent.wait()[0], values(rank, got.numel(), torch.float32))
        after.wait()
        same(results[0].flatten(), values(left, got.numel(), torch.float32), "a message by its future")
        assert received.done() and received.value()[0].data_ptr() == got.data_ptr()
    # Asked for once it is over; nobody waits for it by another call.
    got = torch.zeros(1)
    work = dist.irecv(got, left)
    dist.send(torch.ones(1), right) if rank == 0 else None
    work.wait()
    dist.send(torch.ones(1), right) if rank != 0 else None
    assert work.get_future().done() and work.get_future().wait()[0][0] == 1


def groups(rank, size):
    """Groups over subsets, made and dropped in any order."""
    pairs = [dist.new_group([i, (i + 1) % size]) for i in range(size)] if size > 2 else []
    for i, group in enumerate(pairs):
        if rank in (i, (i + 1) % size):
            tensor = torch.full((10,), float(rank))
            dist.all_reduce(tensor, group=group)
            assert (tensor == i + (i + 1) % size).all()
    for group in pairs[::2]:
        if group != dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)
    dist.barrier()
    for _ in range(5):
        group = dist.new_group(list(range(size)))
        dist.barrier(group=group)
        dist.destroy_process_group(group)
        # The last one to know of this group is the call.
        group = dist.new_group(list(range(size)))
        tensor = torch.ones(100_000)
        dist.all_reduce(tensor, group=group, async_op=True)
        dist.destroy_process_group(group)
        del group
    # A forked process has a copy of the groups, which it may drop.
    child = os.fork()
    if child == 0:
        dist.destroy_process_group()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    dist.barrier()


def grouped(rank, size):
    """Calls that torch 2 makes as one."""
    if int(torch.__version__.split(".")[0]) < 2:
        return
    as_one = dist.distributed_c10d._coalescing_manager
    counts = (3, 5)
    tensors = [values(rank, count, torch.float32) for count in counts]
    with as_one():
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor, count in zip(tensors, counts):
        same(tensor, sum(values(i, count, torch.float32) for i in range(size)), "all_reduce in a block")
    outputs = [torch.zeros(count * size) for count in counts]
    with as_one(async_ops=True) as block:
        for output, count in zip(outputs, counts):
            dist.all_gather_into_tensor(output, values(rank, count, torch.float32))
    block.wait()
    for output, count in zip(outputs, counts):
        expected = torch.cat([values(i, count, torch.float32) for i in range(size)])
        same(output, expected, "all_gather_into_tensor in a block")
    outputs = [torch.zeros(count) for count in counts]
    with as_one():
        for output, count in zip(outputs, counts):
            dist.reduce_scatter_tensor(output, torch.arange(count * size, dtype=torch.float32))
    for output, count in zip(outputs, counts):
        expected = size * torch.arange(rank * count, (rank + 1) * count, dtype=torch.float32)
        same(output, expected, "reduce_scatter_tensor in a block")
    # Calls without such a form: the block's end waits for each of them.
    copied = torch.full((4,), float(rank))
    received = torch.zeros(4)
    if rank == 0:
        time.sleep(0.3)
    with as_one(device=torch.device("cpu"), async_ops=True) as block:
        dist.broadcast(copied, 0, async_op=True)
        dist.isend(torch.full((4,), float(rank)), (rank + 1) % size)
        dist.irecv(received, (rank - 1) % size)
    block.wait()
    same(copied, torch.zeros(4), "broadcast in a block")
    same(received, torch.full((4,), float((rank - 1) % size)), "irecv in a block")


BODIES = [all_reduce, reductions, newer_dtypes, rounding, strides, moving, coalesced, grouped, objects, asynchronous, messages]
BODIES += [futures_of_messages, groups, not_numbers]


class Collectives(RanksTest):
    def test_two_ranks(self):
        self.run_all(2, BODIES)

    def test_four_ranks(self):
        self.run_all(4, BODIES)

    def test_one_rank(self):
        self.run_all(1, [all_reduce, reductions, moving, objects])


if __name__ == "__main__":
    unittest.main(verbosity=0)

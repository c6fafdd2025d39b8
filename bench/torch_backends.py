#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times calls of torch.distributed with gloo and with shmem, in one run.

usage: torch_backends.py [--sizes 2,4,8] [--seconds 0.3]

For each number of ranks, call and size: the time of a call (median of rounds, slowest rank) with each backend, and with
shmem's on tensors in symmetric memory, taken in turns; and how many times faster than gloo shmem is. Set PYTHONPATH to
build/lib/python.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed as dist

    import shmem_torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

torch.set_num_threads(1)
CALLS = ("barrier", "all_reduce", "broadcast", "all_gather", "all_to_all")
BYTES = (4, 64, 1024, 4096, 65536, 1 << 20, 16 << 20, 64 << 20)


def maker(call, size, count, group, allocate):
    """A function that makes one call."""
    tensor = allocate(max(count, 1)).fill_(1)
    if call == "barrier":
        return lambda: dist.barrier(group=group)
    if call == "all_reduce":
        return lambda: dist.all_reduce(tensor, dist.ReduceOp.MAX, group=group)
    if call == "broadcast":
        return lambda: dist.broadcast(tensor, 0, group=group)
    if call == "all_gather":
        outputs = [torch.zeros(count) for _ in range(size)]
        return lambda: dist.all_gather(outputs, tensor, group=group)
    output = torch.zeros(count * size)
    given = allocate(count * size).fill_(1)
    return lambda: dist.all_to_all_single(output, given, group=group)


def timed(make, rounds):
    """Mean seconds of one of the calls."""
    begin = time.perf_counter()
    for _ in range(rounds):
        make()
    return (time.perf_counter() - begin) / rounds


def slowest(value, group):
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(tensor, dist.ReduceOp.MAX, group=group)
    return tensor.item()


def measure(rank, size, folder, seconds, results):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    shmem = dist.new_group(backend="shmem")
    ways = {
        "gloo": (dist.group.WORLD, torch.empty),
        "shmem": (shmem, torch.empty),
        "symmetric": (shmem, lambda count: shmem_torch.empty(count, group=shmem)),
    }
    for call in CALLS:
        for count in (0,) if call == "barrier" else (one // 4 for one in BYTES):
            if call in ("all_gather", "all_to_all") and count * size * 4 > 256 << 20:
                continue
            makes = {name: maker(call, size, count, *way) for name, way in ways.items()}
            rounds = {}
            for name, make in makes.items():
                timed(make, 3)
                one = slowest(timed(make, 3), shmem)
                rounds[name] = max(1, min(2000, int(seconds / 5 / one)))
            samples = {name: [] for name in makes}
            for _ in range(5):  # in turns: both see the same machine
                for name, make in makes.items():
                    dist.barrier(group=shmem)
                    samples[name].append(slowest(timed(make, rounds[name]), shmem))
            row = {name: statistics.median(values) for name, values in samples.items()}
            if rank == 0:
                results.put((call, count * 4, row))
    if rank == 0:
        results.put(None)
        results.close()
        results.join_thread()
    dist.barrier()
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2,4,8")
    parser.add_argument("--seconds", default=0.3, type=float, help="for each call, size and backend")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("fork")
    print("ranks call             bytes    gloo_us   shmem_us  times_faster  symmetric_us  times_faster")
    for size in map(int, arguments.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            results = context.Queue()
            ranks = [
                context.Process(target=measure, args=(rank, size, folder, arguments.seconds, results))
                for rank in range(size)
            ]
            for process in ranks:
                process.start()
            while (result := results.get(timeout=300)) is not None:
                call, count, row = result
                gloo, shmem, symmetric = (1e6 * row[name] for name in ("gloo", "shmem", "symmetric"))
                print(
                    f"{size:5} {call:12} {count:9} {gloo:10.1f} {shmem:10.1f} {gloo / shmem:13.1f} {symmetric:13.1f} "
                    f"{gloo / symmetric:13.1f}",
                    flush=True,
                )
            for process in ranks:
                process.join()


if __name__ == "__main__":
    main()

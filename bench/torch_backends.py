#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times calls of torch.distributed with gloo and with shmem, in one run.

usage: torch_backends.py [--sizes 2,4,8] [--seconds 0.3] [--svg FILE]

For each number of ranks, call and size: the time of a call (median of rounds, slowest rank) with each backend, and with
shmem's on tensors in symmetric memory, taken in turns; and how many times faster than gloo shmem is. Last, how long it
takes all ranks to copy as many bytes at the same time: an all_reduce reads and writes no less. Set PYTHONPATH to
build/lib/python. --svg needs python3-matplotlib.
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
CALLS = ("barrier", "all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "all_to_all", "send")
BYTES = (4, 64, 1024, 4096, 65536, 1 << 20, 16 << 20, 64 << 20)


def maker(call, size, count, group, allocate):
    """A function that makes one call."""
    tensor = allocate(max(count, 1)).fill_(1)
    output = torch.zeros(max(count, 1))
    if call == "barrier":
        return lambda: dist.barrier(group=group)
    if call == "copy":
        return lambda: output.copy_(tensor)
    if call == "all_reduce":
        return lambda: dist.all_reduce(tensor, dist.ReduceOp.MAX, group=group)
    if call == "reduce":
        return lambda: dist.reduce(tensor, 0, dist.ReduceOp.MAX, group=group)
    if call == "broadcast":
        return lambda: dist.broadcast(tensor, 0, group=group)
    if call == "send":  # from each rank to the next one, around
        return lambda: pass_on(tensor, output, group)
    if call == "all_to_all":
        outputs = torch.zeros(count * size)
        given = allocate(count * size).fill_(1)
        return lambda: dist.all_to_all_single(outputs, given, group=group)
    parts = [torch.ones(count) for _ in range(size)]
    if call == "all_gather":
        return lambda: dist.all_gather(parts, tensor, group=group)
    mine = parts if dist.get_rank() == 0 else None
    if call == "gather":
        return lambda: dist.gather(tensor, mine, 0, group=group)
    return lambda: dist.scatter(tensor, mine, 0, group=group)


def pass_on(tensor, output, group):
    rank, size = dist.get_rank(), dist.get_world_size()
    sent = dist.isend(tensor, (rank + 1) % size, group=group)
    dist.recv(output, (rank - 1) % size, group=group)
    sent.wait()


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
            if call in ("all_gather", "gather", "scatter", "all_to_all") and count * size * 4 > 256 << 20:
                continue
            makes = {name: maker(call, size, count, *way) for name, way in ways.items()}
            makes["copy"] = maker("copy", size, count, *ways["gloo"])
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


def run(size, seconds):
    """Yields (call, bytes, {way: microseconds})."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        results = context.Queue()
        ranks = [context.Process(target=measure, args=(rank, size, folder, seconds, results)) for rank in range(size)]
        for process in ranks:
            process.start()
        while (result := results.get(timeout=300)) is not None:
            call, count, row = result
            yield call, count, {name: 1e6 * value for name, value in row.items()}
        for process in ranks:
            process.join()


def draw(rows, file):
    """A chart for each number of ranks: how many times faster than gloo."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "torch_backends", "font.size": 9})
    from matplotlib import pyplot

    figure, plots = pyplot.subplots(1, len(rows), figsize=(5 * len(rows), 5), sharey=True, squeeze=False)
    for plot, (size, table) in zip(plots[0], rows.items()):
        for number, call in enumerate(CALLS):
            points = [(count, row["gloo"] / row["shmem"]) for one, count, row in table if one == call]
            if call == "barrier":
                plot.axhline(points[0][1], color=f"C{number}", linestyle="--", linewidth=1, label=call)
            else:
                plot.plot(*zip(*points), color=f"C{number}", marker="o", markersize=3, label=call)
        plot.axhline(1, color="black", linewidth=1)
        plot.set(title=f"{size} ranks", xlabel="bytes", xscale="log", yscale="log")
        plot.grid(True, which="major", linewidth=0.3)
    plots[0][0].set_ylabel("times faster than gloo")
    plots[0][-1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2,4,8")
    parser.add_argument("--seconds", default=0.3, type=float, help="for each call, size and backend")
    parser.add_argument("--svg", help="write a chart to this file")
    arguments = parser.parse_args()
    print("ranks call             bytes    gloo_us   shmem_us  times_faster  symmetric_us  times_faster    copy_us")
    rows = {}
    for size in map(int, arguments.sizes.split(",")):
        rows[size] = []
        for call, count, row in run(size, arguments.seconds):
            rows[size].append((call, count, row))
            gloo, shmem, symmetric, copy = (row[name] for name in ("gloo", "shmem", "symmetric", "copy"))
            print(
                f"{size:5} {call:12} {count:9} {gloo:10.1f} {shmem:10.1f} {gloo / shmem:13.1f} {symmetric:13.1f} "
                f"{gloo / symmetric:13.1f} {copy:10.1f}",
                flush=True,
            )
    if arguments.svg:
        draw(rows, arguments.svg)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs, block tables and expected outputs of the kv_shuffle example, by the algorithm of Ascend SHMEM's golden.py.

golden.py PE_SIZE FOLDER. Needs only Python. The random numbers differ from that script's, which uses NumPy.
"""
import array
import os
import random
import sys

MAX_SEQLEN, MAX_BATCH, INIT_BATCH = 1024, 10, 5
PAGE_SIZE, KV_HEADS, HEAD_DIM = 128, 8, 128
BLOCKS = MAX_SEQLEN * MAX_BATCH // PAGE_SIZE
BLOCK_BYTES = KV_HEADS * PAGE_SIZE * HEAD_DIM  # int8
MOST_MOVED = 32768


def place(lengths):
    """The blocks of each sequence of a PE, one sequence after the other; each has room for another token."""
    tables, first = [], 0
    for length in lengths:
        count = length // PAGE_SIZE + 1
        tables.append(list(range(first, first + count)))
        first += count
    return tables, first


def pair_up(sums):
    """The partner of each PE: most tokens with fewest, second most with second fewest, ..."""
    order = sorted(range(len(sums)), key=lambda pe: sums[pe])
    partner = [0] * len(sums)
    for position, pe in enumerate(order):
        partner[pe] = order[len(order) - 1 - position]
    return partner


def plan(pe, partner, sums, mean, lengths, tables, used):
    """Operation and block tables of a PE: whole sequences, as far as neither of the two passes the mean."""
    if sums[pe] <= mean or sums[partner] >= mean:
        return 1, [], []
    budget = min(sums[pe] - mean, mean - sums[partner], MOST_MOVED)
    source, moved = [], 0
    for length, blocks in zip(lengths, tables):
        if budget > length:
            budget -= length
            moved += length
            source += blocks
    return (0 if moved > 0 else 1), source, [used[partner] + i for i in range(len(source))]


def write(folder, name, data):
    with open(os.path.join(folder, name + ".bin"), "wb") as file:
        file.write(data)


def numbers(values):
    return array.array("q", values).tobytes()


def main():
    if len(sys.argv) != 3 or not sys.argv[1].isdigit() or int(sys.argv[1]) < 1:
        sys.exit("Usage: golden.py PE_SIZE FOLDER")
    pes, folder = int(sys.argv[1]), sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    numbers_from = random.Random(42)
    lengths = [[numbers_from.randrange(MAX_SEQLEN) for _ in range(INIT_BATCH)] for _ in range(pes)]
    tables, used = zip(*(place(mine) for mine in lengths))
    sums = [sum(mine) for mine in lengths]
    mean = sum(sums) // pes
    partner = pair_up(sums)
    plans = [plan(pe, partner[pe], sums, mean, lengths[pe], tables[pe], used) for pe in range(pes)]

    rows = []
    for pe, (operation, source, destination) in enumerate(plans):
        rows += [partner[pe], operation]
        write(folder, f"src_block_table_pe_{pe}", numbers(source))
        write(folder, f"dst_block_table_pe_{pe}", numbers(destination))
        write(folder, f"block_num_pe_{pe}", numbers([len(destination)]))
    write(folder, "pair_list", numbers(rows))

    for cache in "kv":
        inputs = [numbers_from.randbytes(used[pe] * BLOCK_BYTES).ljust(BLOCKS * BLOCK_BYTES, b"\0") for pe in range(pes)]
        for pe in range(pes):
            golden = bytearray(inputs[pe])
            operation, source, destination = plans[partner[pe]]
            for here, there in zip(source, destination) if operation == 0 else ():
                golden[there * BLOCK_BYTES:(there + 1) * BLOCK_BYTES] = \
                    inputs[partner[pe]][here * BLOCK_BYTES:(here + 1) * BLOCK_BYTES]
            write(folder, f"{cache}_cache_input_pe_{pe}", inputs[pe])
            write(folder, f"{cache}_cache_golden_pe_{pe}", golden)


if __name__ == "__main__":
    main()

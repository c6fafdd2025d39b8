#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two serving engines share KV blocks by the hash of their tokens: one computes the blocks of a prompt and publishes
them, the other finds and pulls those of the prefix that both prompts have, and computes the rest itself.

python3 two_engines.py                   starts both
python3 two_engines.py prefill NAME      one of them, in a terminal of its own; Ctrl-C ends it
python3 two_engines.py decode NAME       the other one

They are independent processes of one user on one node: no launcher, no server, no collective call.
"""

import hashlib
import os
import subprocess
import sys
import time

import numpy as np

try:
    import shmem_kv
except ImportError as error:
    sys.exit(f"{error}: name the folder of shmem_kv in PYTHONPATH, in a build tree build/lib/python (docs/python.md)")

PAGE = 16  # tokens of a block
SHAPE = (2, 32, PAGE, 8, 64)  # keys and values, layers, tokens, heads, numbers of a head: 1 MiB
LAYOUT = shmem_kv.layout_of(model="example", dtype="float16", shape=SHAPE)
SYSTEM_PROMPT = list(range(1000, 1000 + 48 * PAGE))  # what both prompts begin with
COMMON = len(SYSTEM_PROMPT) // PAGE  # blocks that both have
LIMIT = 60  # seconds


def keys_of(tokens):
    """A key for each full block. It stands for all tokens up to the end of the block, as in vLLM and SGLang."""
    keys, running = [], hashlib.sha256()
    for begin in range(0, len(tokens) // PAGE * PAGE, PAGE):
        running.update(np.array(tokens[begin : begin + PAGE], np.int64).tobytes())
        keys.append(running.digest())
    return keys


def compute(key, block):
    """In place of the model: numbers that only this key has."""
    seed = int.from_bytes(key[:8], "little")
    block[:] = np.random.default_rng(seed).random(SHAPE, np.float32).astype(np.float16)


def prefill(name):
    prompt = SYSTEM_PROMPT + list(range(2000, 2000 + 16 * PAGE))
    keys = keys_of(prompt)
    with shmem_kv.Exchange(name) as exchange:
        blocks = exchange.allocate(len(keys) * int(np.prod(SHAPE)) * 2).array((len(keys), *SHAPE), np.float16)
        for key, block in zip(keys, blocks):
            compute(key, block)
        exchange.publish(keys, list(blocks), LAYOUT)
        print(f"prefill: {len(keys)} blocks of {blocks[0].nbytes >> 10} KiB published", flush=True)
        sys.stdin.read()  # blocks are there as long as this process
        print(f"prefill: {exchange.stats().readers} readers at the end", flush=True)


def decode(name):
    prompt = SYSTEM_PROMPT + list(range(3000, 3000 + 16 * PAGE))
    keys = keys_of(prompt)
    with shmem_kv.Exchange(name) as exchange:
        deadline = time.monotonic() + LIMIT
        while not (found := exchange.find(keys, LAYOUT)).hits()[:COMMON].all():  # the other one may be publishing them
            if time.monotonic() > deadline:
                sys.exit(f"decode: no member of exchange {name} has published the blocks that both prompts have")
            time.sleep(0.01)
        hits = np.flatnonzero(found.hits())
        cache = np.full((len(keys), *SHAPE), np.nan, np.float16)
        begin = time.perf_counter()
        exchange.pull(found.select(hits), [cache[i] for i in hits])
        seconds = time.perf_counter() - begin
        speed = len(hits) * cache[0].nbytes / seconds / 1e9
        print(f"decode: {len(hits)} of {len(keys)} blocks found and pulled, {speed:.1f} GB/s")
    for i in set(range(len(keys))) - set(hits):
        compute(keys[i], cache[i])
    expected = np.empty(SHAPE, np.float16)
    for key, block in zip(keys, cache):
        compute(key, expected)
        if not np.array_equal(block, expected):
            sys.exit("decode: a block has other bytes than were published")
    if len(hits) != COMMON:
        sys.exit("decode: not exactly the blocks of the common prefix were found")
    print("two_engines: correct", flush=True)


def both():
    name = f"two-engines-{os.getpid()}"
    command = [sys.executable, __file__]
    with subprocess.Popen([*command, "prefill", name], stdin=subprocess.PIPE) as owner:
        status = subprocess.run([*command, "decode", name], timeout=2 * LIMIT, check=False).returncode
        owner.stdin.close()
        return status or owner.wait(LIMIT)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(both())
    if len(sys.argv) != 3 or sys.argv[1] not in ("prefill", "decode"):
        sys.exit(__doc__)
    {"prefill": prefill, "decode": decode}[sys.argv[1]](sys.argv[2])

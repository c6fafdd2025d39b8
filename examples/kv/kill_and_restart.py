#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a reader sees when the owner of its blocks is killed and started again: errors and misses, never wrong bytes,
never a call that hangs.

python3 kill_and_restart.py [ROUNDS]

This process reads. In each round it starts an owner, pulls blocks while it kills it (kill -9), and goes on until it is
told that the owner is dead or finds the blocks no more.
"""

import os
import subprocess
import sys
import time
from collections import Counter

import numpy as np

try:
    import shmem_kv
except ImportError as error:
    sys.exit(f"{error}: name the folder of shmem_kv in PYTHONPATH, in a build tree build/lib/python (docs/python.md)")

BLOCKS, BYTES = 256, 65536
KEYS = [f"block {i}" for i in range(BLOCKS)]
LIMIT = 60  # seconds


def own(name):
    """Each byte of a block is its number."""
    with shmem_kv.Exchange(name) as exchange:
        blocks = exchange.allocate(BLOCKS * BYTES).array((BLOCKS, BYTES))
        blocks[:] = np.arange(BLOCKS, dtype=np.uint8)[:, None]
        exchange.publish(KEYS, list(blocks))
        print("ready", flush=True)
        sys.stdin.read()


def read_once(exchange, destination):
    """Counts what came of each block: right, missed, or the name of an error."""
    found = exchange.find(KEYS)
    destination[:] = 0xEE
    statuses = exchange.try_pull(found, list(destination))
    right = destination == np.arange(BLOCKS, dtype=np.uint8)[:, None]
    if not right[statuses == 0].all():
        sys.exit("a pull that reports success has brought other bytes")
    names = ["right" if status == 0 else os.strerror(-status) for status in statuses]
    return Counter(names)


def read_until(exchange, destination, done):
    total, longest, deadline = Counter(), 0.0, time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        begin = time.perf_counter()
        outcome = read_once(exchange, destination)
        longest = max(longest, time.perf_counter() - begin)
        total += outcome
        if done(outcome):
            return total, longest
    sys.exit(f"nothing has changed for {LIMIT} seconds: {total}")


def main(rounds):
    name = f"kill-and-restart-{os.getpid()}"
    destination = np.empty((BLOCKS, BYTES), np.uint8)
    with shmem_kv.Exchange(name) as exchange:
        for number in range(1, rounds + 1):
            with subprocess.Popen(
                [sys.executable, __file__, "own", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as owner:
                if owner.stdout.readline() != "ready\n":
                    sys.exit("the owner does not start")
                before, _ = read_until(exchange, destination, lambda outcome: outcome["right"] == BLOCKS)
                owner.kill()
                after, longest = read_until(exchange, destination, lambda outcome: outcome["right"] == 0)
            causes = ", ".join(f"{count} {cause}" for cause, count in sorted(after.items()))
            print(f"round {number}: {before['right']} blocks right; owner killed: {causes}; longest {longest:.3f} s")
        deadline = time.monotonic() + LIMIT
        while exchange.members() and time.monotonic() < deadline:
            time.sleep(0.01)
        if exchange.members():
            sys.exit(f"dead members are listed: {exchange.members()}")
    print("kill_and_restart: correct", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["own"]:
        own(sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)

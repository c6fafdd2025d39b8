# SPDX-License-Identifier: Apache-2.0
"""A member of an exchange in a process of its own, for tests: exchange_member.py own|lease|store EXCHANGE [ADDRESS].

own: publishes blocks "block 0" to "block 7", in which each byte is the number. lease: finds and leases "block 0".
store: a store with blocks "stored 0" to "stored 7". With ADDRESS it connects with
the member on another node that listens there. Each prints "ready", and ends when its standard input does."""

import sys

import numpy as np
import shmem_kv

BLOCK = 8192
LAYOUT = 5


def main():
    role, name, *address = sys.argv[1:]
    with shmem_kv.Exchange(name, lease_time=60, join_time=60) as exchange:
        if address:
            exchange.connect(address, listen="127.0.0.1:0")
        if role == "own":
            blocks = exchange.allocate(8 * BLOCK).array((8, BLOCK))
            blocks[:] = np.arange(8)[:, None]
            exchange.publish([f"block {i}" for i in range(8)], list(blocks), LAYOUT)
        elif role == "lease":
            exchange.find("block 0", lease=60).check()
        else:
            blocks = np.full((8, BLOCK), np.arange(8)[:, None], np.uint8)
            store = shmem_kv.Store(exchange, 8 * BLOCK)
            assert not store.put([f"stored {i}" for i in range(8)], list(blocks), LAYOUT).any()
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()

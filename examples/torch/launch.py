# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of an example: `python3 ddp.py 4` starts four on this machine, `python3 ddp.py 4 gloo` four that use
another backend. Under torchrun they have been started already."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing

try:
    import shmem_torch  # noqa: F401: registers the backend "shmem"
except ImportError as error:
    sys.exit(f"{error}: name the folder of shmem_torch in PYTHONPATH, in a build tree build/lib/python: docs/python.md")


def _rank(rank, main, size, backend, folder):
    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=f"file://{folder}/store", rank=rank, world_size=size)
    main(rank, size)
    dist.destroy_process_group()


def start(main, ranks=2):
    """Calls main(rank, size) on each rank of a group."""
    backend = sys.argv[2] if len(sys.argv) > 2 else "shmem"
    if "TORCHELASTIC_RUN_ID" in os.environ:
        dist.init_process_group(backend)
        main(dist.get_rank(), dist.get_world_size())
        dist.destroy_process_group()
        return
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # gloo asks for an address of the host's name otherwise
    size = int(sys.argv[1]) if len(sys.argv) > 1 else ranks
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(_rank, (main, size, backend, folder), nprocs=size, start_method="fork")

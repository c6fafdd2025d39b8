# SPDX-License-Identifier: Apache-2.0
"""What others call in a wheel: the commands of its programs, and PyTorch when it is imported. Imports neither module."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from typing import NoReturn


def program() -> NoReturn:
    """Becomes the program of the wheel that has the name of this command."""
    found = importlib.util.find_spec("shmem_kv")
    if found is None or found.origin is None:
        sys.exit(f"{sys.argv[0]}: the Python package shmem_kv is not where {sys.executable} looks for packages")
    file = os.path.join(os.path.dirname(found.origin), "bin", os.path.basename(sys.argv[0]))
    # What the interpreter ignores, a program would ignore, too.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(file, [sys.argv[0], *sys.argv[1:]])


def register_torch_backend() -> None:
    """Makes the backend "shmem" known to torch.distributed; its first group imports shmem_torch.

    Imports shmem_torch if that shall take the place of gloo. PyTorch 2.5 and later call it at the end of "import torch",
    and fail if it does; PyTorch 2.14 also calls it when a program asks for the backend.
    """
    import torch.distributed as dist

    if os.environ.get("SHMEM_TORCH_GLOO") == "1" and dist.is_available():
        import shmem_torch  # noqa: F401
    if importlib.util.find_spec("shmem_torch") is None or not dist.is_available() or hasattr(dist.Backend, "SHMEM"):
        return

    def create(*arguments: object) -> dist.ProcessGroup:
        import shmem_torch

        return shmem_torch._create(*arguments)

    dist.Backend.register_backend("shmem", create, extended_api=True, devices=["cpu"])

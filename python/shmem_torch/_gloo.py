# SPDX-License-Identifier: Apache-2.0
"""Groups that a program asks gloo for: shmem makes them for CPU tensors, where SHMEM_TORCH_GLOO is 1."""

from __future__ import annotations

import functools
import os
from typing import Any

import torch
import torch.distributed.distributed_c10d as c10d

VARIABLE = "SHMEM_TORCH_GLOO"


def is_wanted() -> bool:
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "0", "1"):
        raise ImportError(f'shmem_torch: {VARIABLE} is "{value}"; it is 1 (shmem in place of gloo), 0 or not set')
    return value == "1"


def _in_place_of(asked: str) -> str:
    """The backends to make in place of those asked for: "shmem" for "gloo", and "cpu:shmem,cuda:nccl" for
    "cpu:gloo,cuda:nccl"."""
    devices = dict(one.split(":", 1) for one in asked.split(",") if ":" in one)
    if devices.get("cpu") == "gloo":
        return ",".join(f"{device}:{'shmem' if device == 'cpu' else name}" for device, name in devices.items())
    if asked not in ("gloo", "undefined"):
        return asked
    if not torch.cuda.is_available():
        return "shmem"
    if not hasattr(c10d, "BackendConfig"):  # PyTorch 1: one backend for tensors of all devices
        return asked
    return f"cpu:shmem,cuda:{'gloo' if asked == 'gloo' else 'nccl'}"


def _keep_name(group: Any, asked: str) -> None:
    """Programs, and torch for its calls that only gloo has, look at the name of the backend."""
    world = getattr(c10d, "_world", None)
    groups = c10d._pg_map if world is None else world.pg_map
    if group in groups:
        groups[group] = (c10d.Backend("gloo" if asked == "undefined" else asked), groups[group][1])
        if world is not None:
            world.pg_backend_config[group] = asked


def take_over() -> None:
    """From now on. Groups that a program makes by ProcessGroupGloo itself stay those of gloo."""
    made = c10d._new_process_group_helper
    if hasattr(made, "by_shmem"):
        return

    @functools.wraps(made)
    def by_shmem(size: int, rank: int, ranks: list[int], backend: Any, *rest: Any, **named: Any) -> Any:
        asked = str(backend if backend is not None else "undefined").lower()
        instead = _in_place_of(asked)
        result = made(size, rank, ranks, backend if instead == asked else instead, *rest, **named)
        if instead != asked:
            _keep_name(result[0] if isinstance(result, tuple) else result, asked)  # PyTorch 2: with its store
        return result

    by_shmem.by_shmem = True  # type: ignore[attr-defined]
    c10d._new_process_group_helper = by_shmem

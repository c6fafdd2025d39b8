# SPDX-License-Identifier: Apache-2.0
"""Exceptions and buffers."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from shmem_kv import _core, _dlpack

if TYPE_CHECKING:
    import torch


class AclshmemError(Exception):
    """A call has failed; its text says why."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg)
        self.msg = msg


class AclshmemInvalid(Exception):
    """An argument is missing, or not valid."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg)
        self.msg = msg


class Buffer:
    """Memory: ``addr`` is the address of ``length`` bytes."""

    __slots__ = ("addr", "length")

    def __init__(self, addr: int, length: int) -> None:
        if addr < 0:
            raise ValueError(f"Buffer: the address {addr} is negative")
        if length <= 0:
            raise ValueError(f"Buffer: {length} bytes")
        self.addr = addr
        self.length = length

    def tensor(self, shape: int | tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """What :func:`shmem.core.buffer` has allocated as a CPU tensor, or the beginning of it. It can be read and written
        for as long as it exists; other PEs see it until ``free`` or ``finalize``."""
        import torch  # only here: the rest of the package does not need it

        block = _core.block_at(self.addr)
        if block is None:
            raise AclshmemInvalid(f"{self} is not what buffer() has allocated, or was freed")
        begin = self.addr - block.address
        try:
            lengths = tuple(operator.index(n) for n in (shape if np.iterable(shape) else (shape,)))
            size = math.prod(lengths) * torch.empty(0, dtype=dtype).element_size()
            if min(lengths, default=0) < 0 or size > min(self.length, block.size - begin):
                raise AclshmemInvalid(f"a tensor of {size} bytes, {shape} of {dtype}, in {self}")
            all_bytes = torch.from_numpy(_core.Block.array(block, np.dtype(np.uint8), (block.size,)))
            return all_bytes[begin : begin + size].view(dtype).reshape(lengths)
        except (TypeError, RuntimeError) as error:
            raise AclshmemInvalid(f"a tensor of {shape} of {dtype} in {self}: {error}") from error

    def __repr__(self) -> str:
        return f"Buffer(addr=0x{self.addr:x}, length={self.length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffer) and (self.addr, self.length) == (other.addr, other.length)

    def __hash__(self) -> int:
        return hash((self.addr, self.length))


def memory_of(thing: Any, name: str, *, written: bool = False) -> tuple[int, int, object]:
    """Address and bytes of a Buffer, or of a tensor or array, and what keeps them there."""
    if isinstance(thing, Buffer):
        return thing.addr, thing.length, thing
    if not hasattr(thing, "__dlpack__"):
        raise AclshmemInvalid(f"{name} is a {type(thing).__name__}, and neither a Buffer nor a tensor or array")
    if getattr(thing, "is_neg", bool)():
        raise AclshmemInvalid(f"{name} has the negative bit: its memory has other numbers (resolve_neg() makes a copy)")
    try:
        bits = _dlpack.as_bits(thing)[0]
    except (ValueError, TypeError, BufferError, RuntimeError) as error:
        raise AclshmemInvalid(f"{name}: {error}") from error
    if not bits.flags.c_contiguous or bits.dtype.hasobject:
        raise AclshmemInvalid(f"{name} is not a contiguous tensor or array of numbers")
    if written and not bits.flags.writeable:
        raise AclshmemInvalid(f"{name} is read-only")
    return bits.ctypes.data, bits.nbytes, bits

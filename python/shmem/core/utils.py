# SPDX-License-Identifier: Apache-2.0
"""Exceptions and buffers."""

from __future__ import annotations

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
        lengths = tuple(shape) if np.iterable(shape) else (shape,)
        begin = self.addr - block.address
        size = int(np.prod(lengths, dtype=np.int64)) * torch.empty(0, dtype=dtype).element_size()
        if not 0 <= size <= min(self.length, block.size - begin):
            raise AclshmemInvalid(f"a tensor of {size} bytes in {self}")
        all_bytes = torch.from_numpy(_core.Block.array(block, np.dtype(np.uint8), (block.size,)))
        return all_bytes[begin : begin + size].view(dtype).reshape(lengths)

    def __repr__(self) -> str:
        return f"Buffer(addr=0x{self.addr:x}, length={self.length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Buffer) and (self.addr, self.length) == (other.addr, other.length)

    def __hash__(self) -> int:
        return hash((self.addr, self.length))


def memory_of(thing: Any, name: str) -> tuple[int, int]:
    """Address and bytes of a Buffer, or of a tensor or array."""
    if isinstance(thing, Buffer):
        return thing.addr, thing.length
    try:
        bits = _dlpack.as_bits(thing)[0]
    except (ValueError, TypeError, BufferError, RuntimeError) as error:
        raise AclshmemInvalid(f"{name}: {error}") from error
    if not bits.flags.c_contiguous or bits.dtype.hasobject:
        raise AclshmemInvalid(f"{name} is neither a Buffer nor a contiguous tensor or array of numbers")
    return bits.ctypes.data, bits.nbytes

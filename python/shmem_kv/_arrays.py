# SPDX-License-Identifier: Apache-2.0
"""Arrays in symmetric memory."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _core, _exchange_core
from ._dlpack import EXTRA_TYPES, Array, ExtraType, as_bits, name_of_type


@overload
def empty(shape: int | tuple[int, ...], dtype: ExtraType) -> Array: ...
@overload
def empty(shape: int | tuple[int, ...], dtype: DTypeLike = float) -> NDArray: ...
def empty(shape: int | tuple[int, ...], dtype: Any = float) -> NDArray | Array:
    """An array in symmetric memory, not initialized. Collective over all PEs, which all request the same size.

    An array of NumPy; of types that NumPy does not have (``"bfloat16"``, ``"float8_e4m3fn"`` ...) an :class:`Array`.
    :func:`to_torch` makes a tensor of either. ``dtype`` may also be one of torch.

    Free the memory by :func:`free`, or at the end of an :class:`Arena`. If all references to an array are dropped
    without that, its memory stays allocated until ``finalize()``, because freeing is collective, and garbage collection
    is not. Raises MemoryError if the heap has no room, or if PEs request different sizes; TypeError for types that
    contain Python objects.
    """
    return _allocate(shape, dtype, zero=False)


@overload
def zeros(shape: int | tuple[int, ...], dtype: ExtraType) -> Array: ...
@overload
def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = float) -> NDArray: ...
def zeros(shape: int | tuple[int, ...], dtype: Any = float) -> NDArray | Array:
    """Like :func:`empty`, but filled with zeros."""
    return _allocate(shape, dtype, zero=True)


def free(array: Any) -> None:
    """Frees the memory of an array of :func:`empty` or :func:`zeros`. Collective, in the same order on all PEs.

    A tensor that shares its memory will do. Do not read or write the array or a view of it afterwards. Raises ValueError for another array, or if it was freed
    before.
    """
    block = block_of(array)
    if block is None:
        raise ValueError("free: the array is not from empty() or zeros()")
    block.free()


_registered: dict[int, Any] = {}


def register(array: Any, fd: int = -1, offset: int = 0) -> None:
    """Makes the memory of an array or tensor symmetric that the program has already. Collective over all PEs, each of
    which gives as many bytes.

    Afterwards it can be a part of a :class:`Cache`. The memory is a shared mapping: an array in
    ``multiprocessing.shared_memory``, a tensor after ``share_memory_()``, or one of a memfd. The library finds the file;
    or ``fd`` is its descriptor, and ``offset`` the place of the array in it. Other memory is accepted too, but its blocks
    move more slowly between the PEs of a node. The array is kept alive until :func:`unregister` or :func:`finalize`.

    Raises ValueError, PermissionError or another OSError, on all PEs, which names the PE: for memory that is not
    contiguous or read-only, sizes that differ, memory that is registered already, or another ``fd``.
    """
    bits = as_bits(array)[0]
    if not bits.flags.c_contiguous or not bits.flags.writeable:
        raise ValueError("register: the array is not contiguous (C order), or read-only")
    _core.register_memory(bits.ctypes.data, bits.nbytes, fd, offset)
    _registered[bits.ctypes.data] = array


def unregister(array: Any) -> None:
    """Ends :func:`register`. Collective."""
    address = as_bits(array)[0].ctypes.data
    _core.unregister_memory(address)
    _registered.pop(address, None)


def forget_registered() -> None:
    """At the end of the library, which has unregistered everything."""
    _registered.clear()


def is_symmetric(array: Any) -> bool:
    """Whether the entire array or tensor is in symmetric memory that is available now."""
    return why_not_symmetric(as_bits(array)[0]) is None


class Arena:
    """Arrays that are freed together, the last one first, at the end of a ``with`` block. Collective like them.

    If the block ends with an exception nothing is freed, because the other PEs may not reach this point.
    """

    def __init__(self) -> None:
        self._arrays: list[NDArray | Array] = []

    def empty(self, shape: int | tuple[int, ...], dtype: Any = float) -> Any:
        """Like :func:`shmem_kv.empty`."""
        self._arrays.append(empty(shape, dtype))
        return self._arrays[-1]

    def zeros(self, shape: int | tuple[int, ...], dtype: Any = float) -> Any:
        """Like :func:`shmem_kv.zeros`."""
        self._arrays.append(zeros(shape, dtype))
        return self._arrays[-1]

    def free(self) -> None:
        """Frees all arrays."""
        while self._arrays:
            free(self._arrays.pop())

    def __enter__(self) -> Arena:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.free()


def block_of(array: Any) -> _core.Block | None:
    """The block of memory of an array, a view, or a tensor that shares its memory."""
    if not isinstance(array, (np.ndarray, Array)):
        array = as_bits(array)[0]
    base = array
    while isinstance(base, (np.ndarray, Array)):
        base = base.base if isinstance(base, np.ndarray) else base._owner
    if isinstance(base, _exchange_core.Imported):
        return _core.block_at(base.address)
    return base if isinstance(base, _core.Block) else None


def why_not_symmetric(array: NDArray) -> str | None:
    """Why other PEs cannot use a contiguous array, or None."""
    block = block_of(array)
    if block is not None and block.state == _core.State.FREED:
        return "was freed"
    if block is not None and block.state == _core.State.FINALIZED:
        return "is of before finalize()"
    if not _core.is_symmetric(array.ctypes.data, array.nbytes):
        return "is not in symmetric memory (empty() and zeros() make arrays that are; register() takes others)"
    return None


def _allocate(shape: int | tuple[int, ...], dtype: Any, zero: bool) -> NDArray | Array:
    dtype = name_of_type(dtype)
    extra = dtype if isinstance(dtype, str) and dtype in EXTRA_TYPES else None
    kind = np.dtype(dtype) if extra is None else np.dtype(f"uint{EXTRA_TYPES[extra][1]}")
    if kind.hasobject:
        raise TypeError(f"{kind} contains Python objects, which other PEs cannot use")
    lengths = tuple(int(n) for n in (shape if np.iterable(shape) else (shape,)))
    if any(n < 0 for n in lengths):
        raise ValueError(f"negative dimensions in {lengths}")
    block = _core.allocate(math.prod(lengths) * kind.itemsize, zero)
    if extra is not None:
        return Array(block, block.address, lengths, extra)
    return _core.Block.array(block, kind, lengths)

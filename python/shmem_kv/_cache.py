# SPDX-License-Identifier: Apache-2.0
"""The description of a KV cache."""

from __future__ import annotations

from typing import Any, Literal, get_args

from numpy.typing import NDArray

from . import _core
from ._arrays import why_not_symmetric
from ._dlpack import as_bits

Format = Literal["apart", "by_layer", "interleaved", "by_block", "latent"]

# The number of each format is that of shmemx_kv.h. Of the dimensions, L is layers, B blocks, H kv_heads, P tokens of a
# block, D numbers of a head, and 2 is K and V.
_DIMENSIONS: dict[str, tuple[str, ...]] = {
    "apart": ("LBHPD", "BHPD"),
    "by_layer": ("L2BHPD", "2BHPD"),
    "interleaved": ("LB2HPD", "B2HPD"),
    "by_block": ("BL2HPD", "B2HPD"),
    "latent": ("LBHPD", "LBPD", "BPD"),
}
_NAMES = {"L": "layers", "B": "blocks", "H": "kv_heads", "P": "page_size", "D": "head_dim", "2": "2"}


class Cache:
    """K and V of a cache: arrays of ``empty()`` or ``zeros()``, or that were given to ``register()``, or contiguous parts
    of them, the same on all PEs.

    ``format`` is their layout. A single layer needs no [layers], and the order of the last three does not matter.

    ===============  ==============================================================  ====================
    ``"apart"``      k and v: [layers][blocks][kv_heads][page_size][head_dim] each   where ``v`` is given
    ``"by_layer"``   k alone: [layers][2][blocks][kv_heads][page_size][head_dim]     vLLM
    ``interleaved``  k alone: [layers][blocks][2][kv_heads][page_size][head_dim]     FlashInfer
    ``"by_block"``   k alone: [blocks][layers][2][kv_heads][page_size][head_dim]     for transfer
    ``"latent"``     k alone: [layers][blocks][page_size][head_dim]; there is no V   DeepSeek's MLA
    ===============  ==============================================================  ====================

    Elements have 1, 2, 4 or 8 bytes of any type, bfloat16 and float8 too; they are only copied. Everything that DLPack or
    ``numpy.asarray`` accepts without a copy, such as a tensor of the CPU, can be used like an array. ``k`` and ``v`` of
    the object are arrays of NumPy of the same memory, and ``dtype`` is the name of the type.

    Raises ValueError, which names the array, if one is not in symmetric memory, not contiguous, or of another shape.
    """

    def __init__(self, k: Any, v: Any = None, format: Format | None = None) -> None:
        if format is None and v is None:
            raise ValueError(f"Cache: without v, format says how K and V lie: {', '.join(get_args(Format)[1:])}")
        self.format: Format = "apart" if format is None else format
        if self.format not in _DIMENSIONS:
            raise ValueError(f"Cache: format is one of {', '.join(_DIMENSIONS)}, not {format!r}")
        if (self.format == "apart") != (v is not None):
            raise ValueError(f"Cache: format {self.format!r} is of " + ("k and v" if v is None else "k alone"))
        self.k: NDArray
        self.dtype: str
        self.k, self.dtype = _bits_of("k", k)
        self.v: NDArray | None
        self.v, v_dtype = (None, self.dtype) if v is None else _bits_of("v", v)
        sizes = _sizes(self.k, self.format)
        self.layers: int = sizes["L"]
        self.blocks: int = sizes["B"]
        self.kv_heads: int = sizes["H"]
        self.page_size: int = sizes["P"]
        self.head_dim: int = sizes["D"]
        if self.v is not None and (self.v.shape, v_dtype) != (self.k.shape, self.dtype):
            raise ValueError(f"Cache: v is {v_dtype} of shape {self.v.shape}, but k is {self.dtype} of {self.k.shape}")
        for name, array in self._arrays():
            _check_memory(name, array)
        self._require("Cache")
        self._described = _core.Cache(
            self.k.ctypes.data,
            0 if self.v is None else self.v.ctypes.data,
            list(_DIMENSIONS).index(self.format),
            self.k.itemsize,
            [self.layers, self.blocks, self.kv_heads, self.page_size, self.head_dim],
        )

    def __repr__(self) -> str:
        return (
            f"<shmem_kv.Cache {self.format}, {self.dtype}, {self.layers} layers of {self.blocks} blocks of "
            f"{self.kv_heads} x {self.page_size} x {self.head_dim}>"
        )

    @property
    def block_bytes(self) -> int:
        """The bytes of a block: K and V of all layers."""
        return sum(array.nbytes for _, array in self._arrays()) // max(self.blocks, 1)

    def _arrays(self) -> list[tuple[str, NDArray]]:
        return [("k", self.k)] if self.v is None else [("k", self.k), ("v", self.v)]

    def _require(self, call: str) -> _core.Cache | None:
        """The library's description; raises if the memory cannot be used, or can no longer be used."""
        _core.require(call)
        for name, array in self._arrays():
            reason = why_not_symmetric(array)
            if reason is not None:
                raise ValueError(f"{call}: {name} {reason}")
        return getattr(self, "_described", None)


def _bits_of(name: str, array: Any) -> tuple[NDArray, str]:
    try:
        return as_bits(array)
    except ValueError as error:
        raise ValueError(f"Cache: {name}: {error}") from None


def _sizes(k: NDArray, format: str) -> dict[str, int]:
    for letters in _DIMENSIONS[format]:
        if len(letters) == k.ndim:
            sizes = {"L": 1, "H": 1} | dict(zip(letters, k.shape))
            if sizes.get("2", 2) != 2:
                raise ValueError(
                    f"Cache: k of shape {k.shape} has {sizes['2']} in place of K and V at index {letters.index('2')}; "
                    f"{_expected(format)}"
                )
            return sizes
    raise ValueError(f"Cache: k has {k.ndim} dimensions, {k.shape}; {_expected(format)}")


def _expected(format: str) -> str:
    shapes = ("".join(f"[{_NAMES[letter]}]" for letter in letters) for letters in _DIMENSIONS[format])
    return f"format {format!r} is {' or '.join(shapes)}"


def _check_memory(name: str, array: NDArray) -> None:
    if array.dtype.hasobject or array.itemsize not in (1, 2, 4, 8):
        raise ValueError(f"Cache: {name} has elements of {array.dtype}; they are of 1, 2, 4 or 8 bytes")
    if not array.flags.c_contiguous:
        raise ValueError(f"Cache: {name} is not contiguous (C order); its strides are {array.strides}")
    if not array.flags.writeable:
        raise ValueError(f"Cache: {name} is read-only")

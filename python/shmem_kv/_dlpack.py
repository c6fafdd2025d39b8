# SPDX-License-Identifier: Apache-2.0
"""Arrays of types that NumPy does not have, and arrays of other libraries, by DLPack."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from . import _exchange_core

if TYPE_CHECKING:
    import torch

ExtraType = Literal[
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]
# DLPack's code and bits: kDLBfloat, kDLFloat8_e3m4, ...
EXTRA_TYPES: dict[str, tuple[int, int]] = {
    name: (4, 16) if name == "bfloat16" else (6 + i, 8) for i, name in enumerate(get_args(ExtraType))
}
_KINDS = {0: "int", 1: "uint", 2: "float", 5: "complex", 6: "bool"}
_CPU = 1


class Array:
    """An array of a type that NumPy does not have, such as ``"bfloat16"`` or ``"float8_e4m3fn"``.

    :func:`to_torch` makes a tensor of the same memory, if torch has the type; :meth:`numpy` is the bits of the numbers.
    ``torch.from_dlpack`` makes that tensor too if the DLPack of torch has the type: that of torch 2.6 has no float8.
    """

    def __init__(self, owner: object, address: int, shape: tuple[int, ...], dtype: str) -> None:
        self._owner = owner
        self._address = address
        self.shape = shape
        self.dtype = dtype
        """The name of the type."""

    @property
    def itemsize(self) -> int:
        """The bytes of a number."""
        return EXTRA_TYPES[self.dtype][1] // 8

    @property
    def nbytes(self) -> int:
        """The bytes of all numbers."""
        return math.prod(self.shape) * self.itemsize

    def numpy(self) -> NDArray:
        """The same memory as unsigned whole numbers of the same size."""
        return _exchange_core.view_array(self, self._address, self.shape, np.dtype(f"uint{8 * self.itemsize}"))

    def __dlpack__(self, *, stream: object = None, **options: object) -> object:
        return _exchange_core.export_array(self, self._address, self.shape, *EXTRA_TYPES[self.dtype])

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<shmem_kv.Array of {self.dtype}, {' x '.join(map(str, self.shape))}>"


def from_dlpack(array: Any) -> NDArray | Array:
    """The memory of another library's array, such as a tensor of torch, as an array of NumPy or an :class:`Array`.

    Raises ValueError if it is not contiguous or not in the memory of the host.
    """
    device, _ = array.__dlpack_device__()
    if device != _CPU:
        raise ValueError(
            f"from_dlpack: the array is in the memory of a device (DLPack's kind {device}), not of the host"
        )
    taken, extra = _take(array)
    if not taken.contiguous:
        raise ValueError("from_dlpack: the array is not contiguous (C order)")
    shape = tuple(taken.shape)
    if extra is not None:
        return Array(taken, taken.address, shape, extra)
    if taken.code not in _KINDS:
        raise ValueError(f"from_dlpack: DLPack's type {taken.code} of {taken.bits} bits has no name here")
    kind = _KINDS[taken.code]
    return _exchange_core.view_array(taken, taken.address, shape, np.dtype(kind if kind == "bool" else f"{kind}{taken.bits}"))


def to_torch(array: NDArray | Array) -> torch.Tensor:
    """A tensor of torch of the memory of an array of :func:`empty` or :func:`zeros`, of any type that torch has.

    Raises TypeError for a type that torch does not have.
    """
    import torch  # only here: the rest of the package does not need it

    if not isinstance(array, Array):
        return torch.from_numpy(array)
    dtype = getattr(torch, array.dtype, None)
    if dtype is None:
        raise TypeError(f"to_torch: torch {torch.__version__} has no type {array.dtype}")
    # As bytes: not every torch has DLPack's code of the type, or NumPy's unsigned whole numbers of two bytes.
    flat = array.numpy().reshape(-1).view(np.uint8)
    return torch.from_numpy(flat).view(dtype).reshape(array.shape)


def as_bits(array: Any) -> tuple[NDArray, str]:
    """An array of NumPy that shares the memory of any array, and the name of the type of its numbers."""
    if not isinstance(array, (np.ndarray, Array)) and hasattr(array, "__dlpack__"):
        try:
            array = from_dlpack(array)
        except (BufferError, RuntimeError, TypeError):
            return _bits_without_dlpack(array)
    if isinstance(array, Array):
        return array.numpy(), array.dtype
    array = np.asarray(array)
    return array, str(array.dtype)


def _take(array: Any) -> tuple[_exchange_core.Imported, str | None]:
    """Another library's array, and the name of its type if NumPy does not have that."""
    try:
        taken = _exchange_core.Imported(array.__dlpack__())
    except (BufferError, RuntimeError):
        # torch 2.6 exports no float8. Other reasons stay errors, for instance that the tensor needs a gradient.
        if not _is_tensor(array) or array.requires_grad or name_of_type(array.dtype) not in EXTRA_TYPES:
            raise
        return _exchange_core.Imported(_as_integers(array).__dlpack__()), name_of_type(array.dtype)
    names = {type_: name for name, type_ in EXTRA_TYPES.items()}
    return taken, names.get((taken.code, taken.bits))


def _bits_without_dlpack(array: Any) -> tuple[NDArray, str]:
    """As as_bits(), of what its library cannot export, or NumPy does not have: bool of torch 1.13, complex32."""
    try:
        bits = np.asarray(array)
    except TypeError:
        if not _is_tensor(array):
            raise
        return as_bits(_as_integers(array))[0], name_of_type(array.dtype)
    return bits, str(bits.dtype)


def _is_tensor(array: Any) -> bool:
    torch = sys.modules.get("torch")  # who has a tensor has imported it
    return torch is not None and isinstance(array, torch.Tensor)


def _as_integers(tensor: Any) -> Any:
    """The memory of a tensor as whole numbers of the same size, of types that the DLPack of every torch has."""
    torch = sys.modules["torch"]
    return tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])


def name_of_type(dtype: Any) -> Any:
    """The name of a type of torch; other types as they are."""
    return str(dtype).removeprefix("torch.") if type(dtype).__module__ == "torch" else dtype

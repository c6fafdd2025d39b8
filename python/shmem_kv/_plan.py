# SPDX-License-Identifier: Apache-2.0
"""Plans: which blocks go where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core

Mode = Literal["copy", "move"]
Planner = Literal["pair", "balanced"]

_MODES = {"copy": 0, "move": 1}
_PLANNERS = {"pair": 0, "balanced": 1}


class Sequence(NamedTuple):
    """A sequence that a PE holds."""

    pe: int
    tokens: int
    blocks: ArrayLike
    """Its block table: its blocks of the PE's cache, in order; at least what ``tokens`` fill."""
    hashes: ArrayLike | None = None
    """For its first blocks. Equal numbers are equal contents, which are not sent to a PE that has them."""


class Placement(NamedTuple):
    """The place of a sequence after the plan was executed."""

    pe: int
    blocks: NDArray[np.int64]


class Plan:
    """Moves of blocks that all happen at once: each destination gets what its source held before.

    ``moves``: rows of (source PE, source block, destination PE, destination block), as int64[n, 4] or a list of tuples,
    in any order, the same on all PEs; PEs are numbers in the operator's team. Sources may be destinations too
    (chains, cycles), one source may have many destinations, and repeated moves count once.
    ``mode``: ``"copy"`` does not change sources; ``"move"`` clears those that are not a destination.

    Plans are local: they need neither ``init()`` nor another PE, and can be used again and again.

    Raises ValueError for a destination with two sources, negative numbers, or, with ``"move"``, a source with two
    destinations.
    """

    def __init__(self, moves: ArrayLike | Iterable[tuple[int, int, int, int]], mode: Mode = "copy") -> None:
        rows = _numbers("moves", moves)
        if rows.size == 0:
            rows = rows.reshape(0, 4)
        if rows.ndim != 2 or rows.shape[1] != 4:
            raise ValueError(
                f"Plan: moves are rows of 4 numbers (PE and block, from and to); these have the shape {rows.shape}"
            )
        self._set(_core.Plan.of_moves(rows, choice("mode", mode, _MODES)), 0)

    @classmethod
    def pairs(
        cls, pair_table: ArrayLike, src_blocks: ArrayLike = (), dst_blocks: ArrayLike = (), me: int | None = None
    ) -> Plan:
        """The tables of Ascend SHMEM's kv_shuffle.

        ``pair_table``: int64[n_pes, 2], the same on all PEs: row p is (the PE that p is paired with, operation), where
        0 sends and anything else receives. ``me``, by default this PE, sends its block ``src_blocks[i]`` to its
        partner's block ``dst_blocks[i]``. Only partners wait for each other. Errors in the tables are reported when the
        plan is executed, so that the partner is told about them (or by ``moves``).
        """
        table = _numbers("pair_table", pair_table)
        if table.ndim == 1 and table.size % 2 == 0:
            table = table.reshape(-1, 2)
        if table.ndim != 2 or table.shape[1] != 2:
            raise ValueError(f"Plan.pairs: pair_table has the shape {table.shape}, and not (n_pes, 2)")
        source, destination = _numbers("src_blocks", src_blocks).ravel(), _numbers("dst_blocks", dst_blocks).ravel()
        if source.size != destination.size:
            raise ValueError(f"Plan.pairs: src_blocks are {source.size}, but dst_blocks {destination.size}")
        plan = cls.__new__(cls)
        plan._set(_core.Plan.of_pairs(_core.my_pe(0) if me is None else me, table, source, destination), 0)
        return plan

    @classmethod
    def balance(
        cls,
        sequences: Iterable[Sequence | tuple],
        *,
        blocks: int,
        page_size: int,
        n_pes: int | None = None,
        planner: Planner = "balanced",
        mode: Mode = "copy",
        tolerance: float = 0,
    ) -> Plan:
        """A plan that moves whole sequences from PEs with many tokens to PEs with few.

        A pure function of its arguments: PEs that pass the same get the same. ``placements`` contains the place of each
        sequence afterwards. ``sequences`` are :class:`Sequence` or similar tuples, and list everything in the caches of
        all PEs, because moved blocks go to blocks that none of them names. Sequences that must not move have 0 tokens.
        Sequences that share blocks have hashes for them.

        ``blocks``: of each PE's cache; ``page_size``: the tokens of a block. ``planner``: ``"balanced"`` moves to any
        PE, as few blocks as possible, takes no PE past the mean, and leaves those alone that are within ``tolerance``
        of it (0: as even as whole sequences allow); ``"pair"`` is that of Ascend SHMEM's kv_shuffle. Raises ValueError,
        which names the sequence, for invalid arguments; with ``"pair"`` OSError (``errno.ENOBUFS``) for a partner
        without room.
        """
        given = [Sequence(*sequence) for sequence in sequences]
        hashes = [None if s.hashes is None else _numbers("hashes", s.hashes, np.uint64).ravel() for s in given]
        made = _core.Plan.of_balance(
            np.array([s.pe for s in given], np.int64),
            np.array([s.tokens for s in given], np.int64),
            [_numbers("blocks", s.blocks).ravel() for s in given],
            hashes,
            choice("planner", planner, _PLANNERS),
            choice("mode", mode, _MODES),
            _core.n_pes(0) if n_pes is None else n_pes,
            blocks,
            page_size,
            tolerance,
        )
        plan = cls.__new__(cls)
        plan._set(made, len(given))
        return plan

    def _set(self, made: _core.Plan, sequences: int) -> None:
        self._made = made
        self._sequences = sequences

    @property
    def moves(self) -> NDArray[np.int64]:
        """The moves, each once, sorted: int64[n, 4], read-only; for a plan of pairs those of this PE."""
        return _core.Plan.moves(self._made)

    @property
    def digest(self) -> int:
        """A number, equal for plans of the same moves and mode, and almost certainly different for others."""
        return self._made.digest

    @property
    def placements(self) -> list[Placement]:
        """For a plan of :meth:`balance`: the place of each sequence afterwards, in their order."""
        return [Placement(*_core.Plan.placement(self._made, i)) for i in range(self._sequences)]

    def __len__(self) -> int:
        return len(self.moves)

    def __repr__(self) -> str:
        try:
            return f"<shmem_kv.Plan of {len(self)} moves, digest {self.digest:016x}>"
        except ValueError as error:
            return f"<shmem_kv.Plan of pairs that is wrong: {error}>"


def choice(name: str, value: str, values: Mapping[str, int]) -> int:
    """The number of a word."""
    if value not in values:
        raise ValueError(f"{name} is {' or '.join(map(repr, values))}, not {value!r}")
    return values[value]


def _numbers(name: str, values: ArrayLike | Iterable, dtype: type = np.int64) -> NDArray:
    array = np.asarray(values if hasattr(values, "__len__") or not np.iterable(values) else list(values))
    if array.size == 0:
        return np.zeros(array.shape, dtype)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} are whole numbers of at most 64 bits, not {array.dtype}")
    return np.ascontiguousarray(array, dtype)

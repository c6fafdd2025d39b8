# SPDX-License-Identifier: Apache-2.0
"""Plans for exchanges: which member shall have which blocks."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _exchange_core
from ._exchange import Key, _names

_ANY = (1 << 63) - 1


class Share(NamedTuple):
    """What a member of an exchange can take."""

    member: int
    """Its ``Member.id``, or any number that no other member of the plan has."""
    weight: int = 1
    """0 to 1000: its part of the load is in proportion to it. 0: it gives away what it has."""
    room: int = _ANY
    """Blocks that it can take besides those that it has."""


class Load(NamedTuple):
    """Blocks that are of use together, such as those of a sequence, and so move together."""

    member: int
    """That has them."""
    load: int
    """What to balance: their bytes, tokens, requests per second. 0: they stay."""
    keys: Sequence[Key]
    """Of the blocks."""


class LoadMove(NamedTuple):
    """A block that one member shall get from another."""

    source: int
    to: int
    load: int
    """An index into the loads."""
    key: bytes


class LoadPlan(NamedTuple):
    """What :func:`plan_loads` has planned."""

    owners: list[int]
    """For each load the member that shall have it."""
    moves: list[LoadMove]
    """By receiver, then by load."""

    def moves_to(self, member: int) -> list[LoadMove]:
        """What a member has to find, pull and publish."""
        return [move for move in self.moves if move.to == member]


def plan_loads(
    members: Iterable[Share | int], loads: Iterable[Load | tuple[int, int, Sequence[Key]]], *, tolerance: float = 0
) -> LoadPlan:
    """Plans moves after which the loads of members are in proportion to their weights as far as whole loads allow.

    A function of its arguments alone: one process makes the plan, for any members, without them and without an exchange,
    and tells them. Nothing moves. Each receiver finds, pulls and publishes the blocks of its moves; owners that do not
    keep their copies withdraw them, once ``find`` says that another member has them.

    ``members``: :class:`Share`, or numbers of members with the weight 1. ``loads`` list all blocks that members have;
    equal keys are equal blocks, and a block that its receiver has, or gets with another load, does not move. No load takes
    a member past its part. With a ``tolerance``, 0 to 1, members within this share of the mean of their part are left
    alone, and others may take a member past its part by no more than that. Raises ValueError, which names the load.
    """
    shares = [Share(*one) if isinstance(one, tuple) else Share(one) for one in members]
    given = [Load(*one) for one in loads]
    keys = [_names(one.keys)[0] for one in given]
    owners, moves = _exchange_core.plan_loads(
        _rows([(one.member, one.weight, one.room) for one in shares], 3),
        _rows([(one.member, one.load) for one in given], 2),
        keys,
        tolerance,
    )
    return LoadPlan(
        [int(owner) for owner in owners],
        [LoadMove(int(source), int(to), int(load), keys[load][key]) for source, to, load, key in moves],
    )


def _rows(rows: list[tuple[int, ...]], width: int) -> NDArray[np.uint64]:
    whole = [[operator.index(value) for value in row] for row in rows]
    if any(not 0 <= value < 1 << 64 for row in whole for value in row):
        raise ValueError("plan_loads: numbers of members, weights, rooms and loads are 0 or more, of 64 bits")
    return np.array(whole, np.uint64).reshape(-1, width)

# SPDX-License-Identifier: Apache-2.0
"""What carries plans out."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

from . import _core
from ._cache import Cache
from ._plan import Plan, choice

Path = Literal["auto", "direct", "scratch"]

_PATHS = {"auto": 0, "direct": 1, "scratch": 2}


class Operator:
    """Moves blocks between the PEs of a team.

    All PEs make it and close it, also those that are not in the team: they give -1 for it, which is what
    ``team_split_strided`` gave them, and cannot use it. Several teams without common PEs get theirs in one call. Its
    other calls are collective over the team.

    ``cores``: threads that copy, 0: 2. ``path``: ``"direct"`` copies from cache to cache, ``"scratch"`` through two
    buffers of each core, ``"auto"`` as is fastest. ``staging``: bytes for blocks that are source and destination at
    once, 0: 16 MiB. All of these are the same on all PEs.

    Use it as a context manager, or :meth:`close` it; ``finalize()`` closes it too. By one thread at a time; others run
    while it waits.
    """

    def __init__(self, team: int = 0, cores: int = 0, path: Path = "auto", staging: int = 0) -> None:
        self._made = _core.Operator(team, cores, choice("path", path, _PATHS), staging)

    def shuffle(self, plan: Plan, cache: Cache) -> None:
        """Carries out a plan, and returns when all blocks are where they belong, on all PEs.

        Everything is checked on all PEs before anything moves: where a plan is wrong for the cache on one PE, or PEs
        differ, all of them raise, and all caches are untouched. (Of a plan of pairs only partners check each other, and
        it returns when this PE's part is done.) After another exception blocks that are destinations are undefined.
        """
        self._made.shuffle(plan._made, cache._require("shuffle"))

    def start(self, plan: Plan, cache: Cache) -> None:
        """Begins what :meth:`shuffle` does and returns.

        Until :meth:`test` has given True or :meth:`wait` has returned, or raised, the blocks that the plan names are
        neither read nor written.
        """
        self._made.start(plan._made, cache._require("start"), cache)

    def test(self) -> bool:
        """Whether the shuffle that was started has ended. Raises what :meth:`shuffle` would have, once, at its end."""
        return self._made.test()

    def wait(self) -> None:
        """Waits for the end of the shuffle that was started. Raises what :meth:`shuffle` would have."""
        self._made.wait()

    def close(self) -> None:
        """Ends it, after a shuffle that is under way. May be called again."""
        self._made.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._made.closed

    def __enter__(self) -> Operator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # After an exception the others may be anywhere; finalize() closes it if they come there.
        if error is None:
            self.close()

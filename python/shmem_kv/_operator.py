# SPDX-License-Identifier: Apache-2.0
"""The operator, which executes plans."""

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

    All PEs create and close it. PEs outside of the team pass -1, which ``team_split_strided`` has returned to them, and
    cannot use it. Several teams without common PEs get their operators in one call. The other calls are collective over
    the team.

    ``cores``: threads that copy, 0: 2. ``path``: ``"direct"`` copies from cache to cache, ``"scratch"`` through two
    buffers of each core, ``"auto"`` by the faster of these. ``staging``: bytes for blocks whose destination is still to
    be read, 0: 16 MiB. All of these must be the same on all PEs.

    Use it as a context manager, or :meth:`close` it; ``finalize()`` closes it too. It is used by one thread at a time;
    other threads run while it waits.
    """

    def __init__(self, team: int = 0, cores: int = 0, path: Path = "auto", staging: int = 0) -> None:
        self._made = _core.Operator(team, cores, choice("path", path, _PATHS), staging)

    def shuffle(self, plan: Plan, cache: Cache) -> None:
        """Executes a plan, and returns when all blocks of all PEs are at their destinations.

        Everything is checked on all PEs before anything moves. If a plan does not match the cache on one PE, or PEs
        differ, all of them raise, and no cache has changed. (With a plan of pairs only partners check each other, and
        the call returns when this PE's part is done.) After another exception destination blocks are undefined.
        """
        self._made.shuffle(plan._made, cache._require("shuffle"))

    def start(self, plan: Plan, cache: Cache) -> None:
        """Begins what :meth:`shuffle` does and returns.

        Do not read or write the blocks that the plan names before :meth:`test` has returned True or :meth:`wait` has
        returned, or one of them has raised.
        """
        self._made.start(plan._made, cache._require("start"), cache)

    def test(self) -> bool:
        """Whether the started shuffle has ended. Raises what :meth:`shuffle` would have raised, once, at its end."""
        return self._made.test()

    def wait(self) -> None:
        """Waits for the end of the started shuffle. Raises what :meth:`shuffle` would have raised."""
        self._made.wait()

    def close(self) -> None:
        """Closes the operator, after the end of a started shuffle. May be called again."""
        self._made.close()

    @property
    def closed(self) -> bool:
        """Whether the operator is closed."""
        return self._made.closed

    def __enter__(self) -> Operator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # After an exception the other PEs may not reach this point. finalize() closes the operator later.
        if error is None:
            self.close()

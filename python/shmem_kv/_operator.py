# SPDX-License-Identifier: Apache-2.0
"""The operator, which executes plans."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Literal, NamedTuple

from . import _core
from ._cache import Cache
from ._plan import Plan, choice

Path = Literal["auto", "direct", "scratch"]

_PATHS = {"auto": 0, "direct": 1, "scratch": 2}


class OperatorStats(NamedTuple):
    """What an operator has done on this PE."""

    shuffles: int
    """That have ended without an exception."""
    failures: int
    """That have ended with one."""
    sent_blocks: int
    """That went to other PEs; with several layers, each counts once."""
    sent_bytes: int
    """Of these blocks."""
    seconds: float
    """Of all shuffles: from the call until this PE knew of the end."""
    failed_invalid: int
    """Failures because of a plan or cache, or because PEs differ: ValueError. The next four are the other causes."""
    failed_aborted: int
    """Another PE's call failed: ConnectionAbortedError."""
    failed_dead: int
    """A PE has died: ConnectionError."""
    failed_timeout: int
    """TimeoutError."""
    failed_other: int
    """All others."""
    metrics_port: int
    """0: the operator does not answer requests for metrics."""


class Operator:
    """Moves blocks between the PEs of a team.

    All PEs create and close it. PEs outside of the team pass -1, which ``team_split_strided`` has returned to them, and
    cannot use it. Several teams without common PEs get their operators in one call. The other calls are collective over
    the team.

    ``cores``: threads that copy, 0: 2. ``path``: ``"direct"`` copies from cache to cache, ``"scratch"`` through two
    buffers of each core, ``"auto"`` by the faster of these. ``staging``: bytes for blocks whose destination is still to
    be read, 0: 16 MiB. All of these must be the same on all PEs. ``metrics``: answer HTTP requests for /metrics of this PE at
    this port of 127.0.0.1 (0: any, see :meth:`stats`), or address and port; each PE of a node needs a port of its own.

    Use it as a context manager, or :meth:`close` it; ``finalize()`` closes it too. It is used by one thread at a time;
    other threads run while it waits.
    """

    def __init__(
        self,
        team: int = 0,
        cores: int = 0,
        path: Path = "auto",
        staging: int = 0,
        *,
        metrics: int | str | None = None,
    ) -> None:
        self._made = _core.Operator(team, cores, choice("path", path, _PATHS), staging)
        if metrics is not None:
            self._made.answer_metrics(str(metrics))

    def shuffle(self, plan: Plan, cache: Cache) -> None:
        """Executes a plan, and returns when all blocks of all PEs are at their destinations.

        Everything is checked on all PEs before anything moves. If a plan does not match the cache on one PE, or PEs
        differ, all of them raise, and no cache has changed. (With a plan of pairs only partners check each other, and
        the call returns when this PE's part is done.) After another exception destination blocks are undefined.
        """
        self._made.shuffle(plan._made, cache._require("shuffle"))

    async def shuffle_async(self, plan: Plan, cache: Cache) -> None:
        """Executes a plan like :meth:`shuffle` while the other tasks of the event loop run.

        A thread of the loop's executor waits for the end. If the task is cancelled the shuffle goes on, and the operator
        cannot be used before it has ended.
        """
        self.start(plan, cache)
        await asyncio.get_running_loop().run_in_executor(None, self.wait)

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

    def stats(self) -> OperatorStats:
        """What this operator has done on this PE since it was created; after the end, what it had done then."""
        shuffles, blocks, nbytes, time_ns, *causes, port = self._made.stats()
        return OperatorStats(shuffles, sum(causes), blocks, nbytes, time_ns / 1e9, *causes, port)

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

# SPDX-License-Identifier: Apache-2.0
"""Replica: the result of a task that stores objects."""


class L2StoreResult(int):
    """The bytes that were stored; -1: it has failed."""

    def __new__(cls, success, bytes_transferred):
        return super().__new__(cls, bytes_transferred if success else -1)

    def is_successful(self) -> bool:
        return self >= 0

    def bytes_transferred(self) -> int:
        return max(int(self), 0)

# SPDX-License-Identifier: Apache-2.0
"""Replica of a part of an interface: see ../README.md."""

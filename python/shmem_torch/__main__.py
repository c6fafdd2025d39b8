# SPDX-License-Identifier: Apache-2.0
"""Runs a Python program, and those that it starts, with shmem in place of gloo."""

from __future__ import annotations

import os
import runpy
import sys
from typing import NoReturn

from ._gloo import VARIABLE

_USAGE = f"""\
Usage: python -m shmem_torch PROGRAM [ARGUMENT...]
       python -m shmem_torch -m MODULE [ARGUMENT...]

Runs a Python program, and the Python processes that it starts, so that shmem makes the groups of CPU
tensors that torch.distributed makes with gloo otherwise: {VARIABLE}=1 for programs that do not import
shmem_torch. For example: python -m shmem_torch -m torch.distributed.run --nproc-per-node 4 train.py
"""


def _fail(why: str) -> NoReturn:
    print(f"shmem_torch: {why}\n\n{_USAGE}", end="", file=sys.stderr)
    raise SystemExit(2)


def _tell_children() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.join(folder, "in_children"), os.path.dirname(folder), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    os.environ[VARIABLE] = "1"


def main() -> None:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in ("-h", "--help"):
        print(_USAGE, end="")
        return
    is_module = bool(arguments) and arguments[0] == "-m"
    arguments = arguments[is_module:]
    if not arguments:
        _fail("there is no program")
    if not is_module and arguments[0].startswith("-"):
        _fail(f"there is no option {arguments[0]}")
    _tell_children()
    from . import _gloo

    _gloo.take_over()
    sys.argv = arguments
    if is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif not os.path.exists(arguments[0]):
        _fail(f"there is no file {arguments[0]}")
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()

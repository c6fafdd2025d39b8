# SPDX-License-Identifier: Apache-2.0
"""For the Python processes that a program of "python -m shmem_torch" starts: imports shmem_torch after torch.

Python imports this at its start. It takes the place of another file of this name, which it runs.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys


class _AfterTorch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds torch, once, and loads it as the next finder would; then shmem_torch."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        found = importlib.util.find_spec(name)
        if found is None or found.loader is None:
            return found
        self._loader = found.loader
        found.loader = self
        return found

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        import shmem_torch  # noqa: F401


def _run_next():
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != here]
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if found is not None and found.loader is not None:
        found.loader.exec_module(importlib.util.module_from_spec(found))


if os.environ.get("SHMEM_TORCH_GLOO") == "1":
    sys.meta_path.insert(0, _AfterTorch())
_run_next()

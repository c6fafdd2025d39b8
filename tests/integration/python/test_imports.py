# SPDX-License-Identifier: Apache-2.0
"""An import that cannot work says in one line what to do, and PyTorch finds the backend of a wheel by itself."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCES = pathlib.Path(__file__).parents[3] / "python"
# As much of PyTorch 2.5 as the entry point uses.
TORCH = """
from types import SimpleNamespace as _Namespace
__version__ = "9.7.1+cpu"
class _Backend:
    @staticmethod
    def register_backend(name, create, extended_api, devices): print(name, devices); _Backend.created = create
distributed = _Namespace(is_available=lambda: True, Backend=_Backend)
import sys
sys.modules["torch.distributed"] = distributed
"""


class Imports(unittest.TestCase):
    def said(self, program, path, status=1):
        environment = os.environ | {"PYTHONPATH": path}
        job = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        self.assertEqual(job.returncode, status, job.stderr)
        return job.stdout if status == 0 else job.stderr.splitlines()[-1]

    def test_of_the_sources(self):
        for module in ("shmem_kv", "shmem_torch"):
            line = self.said(f"import {module}", str(SOURCES))
            self.assertRegex(line, f"^ImportError: {module}: {SOURCES}/{module} has no part that is compiled for Python 3")
            self.assertRegex(line, "build it and set PYTHONPATH=build/lib/python, or install the wheel of scripts/wheel.sh")
        # The folder of libshmem's sources, which has the name that users may guess.
        line = self.said("import shmem", str(SOURCES.parent))
        self.assertRegex(line, f"^ImportError: shmem: {SOURCES.parent}/shmem has the sources of libshmem; the Python modules are shmem ")
        # With the module on the path, it is found also there.
        both = f"{SOURCES.parent}:{os.environ['PYTHONPATH']}"
        self.assertIn("python/shmem", self.said("import shmem.core, shmem; print(shmem.__file__)", both, 0))

    def test_exchanges_load_neither_libshmem_nor_libgba(self):
        program = f"""
import shmem_kv, shmem_kv.adapters.lmcache, shmem_kv.adapters.sglang, shmem_kv.adapters.vllm
def loaded():
    return {{name for name in ("libshmem.", "libgba.", "libkvexchange.") if "/" + name in open("/proc/self/maps").read()}}
with shmem_kv.Exchange("imports-{os.getpid()}") as exchange:
    assert not shmem_kv.Store(exchange, 4096).put("key", b"block").any()
    shmem_kv.plan_loads([shmem_kv.Share(1)], [])
    print(*loaded())
    shmem_kv.initialized()
    print(*sorted(loaded()), len(exchange.members()))
"""
        self.assertEqual(self.said(program, os.environ["PYTHONPATH"], 0), "libkvexchange.\nlibgba. libkvexchange. libshmem. 0\n")

    def test_every_public_name_is_there(self):
        program = "import shmem_kv; print([name for name in shmem_kv.__all__ if name not in dir(shmem_kv)]); from shmem_kv import *"
        self.assertEqual(self.said(program, os.environ["PYTHONPATH"], 0), "[]\n")
        self.assertIn("has no attribute 'nothing'", self.said("import shmem_kv; shmem_kv.nothing", os.environ["PYTHONPATH"]))

    @unittest.skipIf(importlib.util.find_spec("shmem_torch") is None, "shmem_torch is not built")
    def test_with_another_torch_or_none(self):
        built = os.environ["PYTHONPATH"]
        register = "import shmem_entry_points; shmem_entry_points.register_torch_backend()"
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "torch.py").write_text(TORCH)
            shutil.copy(SOURCES / "shmem_entry_points.py", folder)
            path = f"{folder}:{built}"
            line = self.said("import shmem_torch", path)
            self.assertRegex(line, r"ImportError: shmem_torch was built for PyTorch \d+\.\d+, but this is PyTorch 9.7.1\+cpu: use")
            self.assertEqual(self.said("import shmem_kv; print(shmem_kv.initialized())", path, 0), "False\n")
            # The entry point of a wheel fails when the backend is used, not when PyTorch is imported.
            self.assertEqual(self.said(register, path, 0), "shmem ['cpu']\n")
            line = self.said(f"{register}; import torch; torch.distributed.Backend.created()", path)
            self.assertIn("shmem_torch was built for PyTorch", line)
            self.assertEqual(self.said(register, folder, 0), "")  # a wheel without shmem_torch
        line = self.said("import sys; sys.modules['torch'] = None; import shmem_torch", built)
        self.assertRegex(line, r"ImportError: shmem_torch: \S+ has no PyTorch: install PyTorch \d+\.\d+, for which")


if __name__ == "__main__":
    unittest.main(verbosity=0)

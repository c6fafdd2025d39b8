# SPDX-License-Identifier: Apache-2.0
"""The source distribution builds a wheel without network, and the wheel contains what it needs. Exits with 77 without
pip."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

# What the policies of manylinux take for granted.
EVERYWHERE = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so\.\d+")
TREE = pathlib.Path(__file__).parents[3]
for needed in ("pip", "setuptools", "wheel"):
    if importlib.util.find_spec(needed) is None:
        print(f"skipped: Python has no {needed} (Debian: python3-pip python3-setuptools python3-wheel)")
        sys.exit(77)

USE = """
import numpy, shmem_kv, shmem_kv.adapters.lmcache, shmem_kv.adapters.sglang, shmem_kv.adapters.vllm
with shmem_kv.Exchange("wheel") as exchange:
    assert not shmem_kv.Store(exchange, 4096).put("key", b"block").any()
with shmem_kv.init(1 << 21):
    array = shmem_kv.zeros((2, 3), "bfloat16")
    shmem_kv.barrier_all()
    names = ("libshmem", "libgba", "libsodium")
    libraries = {line.split()[-1] for line in open("/proc/self/maps") if any(name + ".so" in line for name in names)}
    assert all("/site/shmem_kv/lib/" in one for one in libraries) and len(libraries) == 3, libraries
print(shmem_kv.__version__, shmem_kv.__file__)
"""
USE_TWO = """
import sys, numpy, shmem_kv
me = len(sys.argv) - 1
unique_id = bytes.fromhex(sys.argv[1]) if me else shmem_kv.unique_id()  # PE 0 gets it, and serves it until the job starts
print(unique_id.hex(), flush=True)
with shmem_kv.init(1 << 21, unique_id=unique_id, my_pe=me, n_pes=2):
    cache = shmem_kv.zeros((2, 4, 64), numpy.float16)
    cache[me] = me + 1
    with shmem_kv.Operator() as operator:
        operator.shuffle(shmem_kv.Plan([(0, 0, 1, 0)]), shmem_kv.Cache(cache, format="latent"))
    print(cache[0, 0, 0])
"""
USE_TORCH = """
import sys, torch, torch.distributed as dist, shmem_torch
rank = int(sys.argv[2])
dist.init_process_group("shmem", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
for tensor in (shmem_torch.empty(3000).fill_(rank + 1), torch.full((3000,), rank + 1.0)):
    dist.all_reduce(tensor)
    assert (tensor == 3).all(), tensor
assert shmem_torch.statistics().direct_calls == 1
print(shmem_torch.__version__)
dist.destroy_process_group()
"""


def not_source(folder, names):
    """What the source distribution does not need, above all folders of builds."""
    if pathlib.Path(folder) != TREE:
        return []
    return [name for name in names if name.startswith("build") or name in (".git", ".cache", "tests")]


class Wheel(unittest.TestCase):
    def command(self, *arguments, **more):
        job = subprocess.run(arguments, capture_output=True, text=True, **more)
        self.assertEqual(job.returncode, 0, f"{arguments}: {job.stdout[-3000:]} {job.stderr[-3000:]}")
        return job.stdout

    def check_needed(self, site):
        """Of libraries: in the wheel, or on every Linux. PyTorch's are in the package torch, and UCX is the system's."""
        contained = {library.name for library in (site / "shmem_kv/lib").iterdir()}
        for library in [*site.glob("shmem_kv/*.so"), *site.glob("shmem_kv/lib/*.so.*")]:
            if "ucx" not in library.name:
                needed = re.findall(r"NEEDED.*\[(.*)\]", self.command("readelf", "-d", library))
                self.assertTrue(needed, str(library))
                missing = [one for one in needed if one not in contained and not EVERYWHERE.fullmatch(one)]
                self.assertEqual(missing, [], str(library))

    def two(self, environment, folder, program, arguments):
        """Runs two processes of a program, and returns what they print. The second gets the first one's first line."""
        processes = []

        def start(*more):
            command = [sys.executable, "-c", program, *more]
            processes.append(
                subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True)
            )

        try:
            start(*arguments[0])
            start(*(arguments[1] or [processes[0].stdout.readline().strip()]))
            printed = [process.communicate(timeout=60)[0] for process in processes]
            self.assertEqual([process.returncode for process in processes], [0, 0])
            return printed
        finally:
            for process in processes:
                process.kill()
                process.communicate()

    def test_contains_what_it_needs(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            tree = folder / "tree"
            shutil.copytree(TREE, tree, ignore=not_source)
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
            environment = os.environ | {
                "CMAKE_BUILD_PARALLEL_LEVEL": "2",
                "CMAKE_ARGS": "-DGBA_WERROR=ON",  # like other builds of the tree, for the compiler's cache
                "PIP_NO_INDEX": "1",
            }
            environment.pop("PYTHONPATH", None)
            self.command(sys.executable, "setup.py", "-q", "sdist", "-d", folder / "source", cwd=tree, env=environment)
            (source,) = (folder / "source").iterdir()
            build = [*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", folder / "out", source]
            self.command(*build, env=environment, cwd=folder)
            (wheel,) = (folder / "out").iterdir()
            self.assertRegex(wheel.name, r"^shmem_kv-[0-9.]+-cp3[0-9]+-cp3[0-9]+-linux_")
            names = zipfile.ZipFile(wheel).namelist()
            for pattern in (r"shmem_kv/_core.*\.so$", r"shmem_kv/lib/libshmem\.so\.\d+", r"shmem_kv/lib/libgba\.so\.\d+"):
                self.assertTrue(any(re.search(pattern, one) for one in names), f"{pattern}: {names}")
            adapters = [f"shmem_kv/adapters/{one}.py" for one in ("__init__", "vllm", "sglang", "lmcache")]
            for one in ("shmem_kv/py.typed", "shmem_kv/_core.pyi", "shmem_kv/_version.py", *adapters):
                self.assertIn(one, names)
            site = folder / "site"
            self.command(*pip, "install", "--no-deps", "--target", site, wheel, env=environment)
            for library in [*site.rglob("*.so"), *site.rglob("*.so.*")]:
                paths = re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", self.command("readelf", "-d", library))
                for path in ":".join(paths).split(":"):
                    self.assertRegex(path, r"^(\$ORIGIN|$)", str(library))
            self.check_needed(site)
            environment["PYTHONPATH"] = str(site)
            said = self.command(sys.executable, "-c", USE, env=environment, cwd=folder)
            self.assertEqual(said.split()[1], str(site / "shmem_kv/__init__.py"))
            printed = self.two(environment, folder, USE_TWO, [[], None])
            self.assertEqual([one.split()[-1] for one in printed], ["1.0"] * 2)
            if any(one.startswith("shmem_torch/") for one in names):
                self.assertIn("shmem_torch/py.typed", names)
                printed = self.two(environment, folder, USE_TORCH, [[folder / "store", str(rank)] for rank in (0, 1)])
                self.assertEqual(printed, [said.split()[0] + "\n"] * 2)
            elif importlib.util.find_spec("torch") is not None:
                print("without shmem_torch: PyTorch's headers are missing")


if __name__ == "__main__":
    unittest.main(verbosity=0)

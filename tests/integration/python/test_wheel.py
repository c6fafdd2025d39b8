# SPDX-License-Identifier: Apache-2.0
"""Wheels of a build folder and of the source distribution, made and installed without network: they contain what they need,
and work in a virtual environment. Exits with 77 without pip."""

import importlib.util
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

# What the policies of manylinux take for granted.
EVERYWHERE = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so\.\d+")
TREE = pathlib.Path(__file__).parents[3]
BUILD = pathlib.Path(os.environ["GBA_BIN"]).parent
for needed in ("ensurepip", "pip", "setuptools", "wheel"):
    if importlib.util.find_spec(needed) is None:
        print(f"skipped: Python has no {needed} (Debian: python3-pip python3-setuptools python3-venv python3-wheel)")
        sys.exit(77)

USE = """
import numpy, shmem.core, shmem_kv, shmem_kv.adapters.lmcache, shmem_kv.adapters.sglang, shmem_kv.adapters.vllm
with shmem_kv.Exchange("wheel") as exchange:
    assert not shmem_kv.Store(exchange, 4096).put("key", b"block").any()
with shmem_kv.init(1 << 21):
    array = shmem_kv.zeros((2, 3), "bfloat16")
    shmem_kv.barrier_all()
    names = ("libshmem", "libkvexchange", "libgba", "libsodium")
    libraries = {line.split()[-1] for line in open("/proc/self/maps") if any(name + ".so" in line for name in names)}
    assert all("-packages/shmem_kv/lib/" in one for one in libraries) and len(libraries) == 4, libraries
print(shmem_kv.__version__, shmem_kv.__file__)
"""
USE_OSHRUN = """
import shmem_kv
with shmem_kv.init(1 << 21):
    me = shmem_kv.my_pe()
    cache = shmem_kv.zeros((2, 4, 64), "float16")
    cache[me] = me + 1
    with shmem_kv.Operator() as operator:
        operator.shuffle(shmem_kv.Plan([(0, 0, 1, 0)]), shmem_kv.Cache(cache, format="latent"))
    print(shmem_kv.n_pes(), cache[0, 0, 0])
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
        """Of its files: in the wheel, found by relative paths, or on every Linux. PyTorch's are in the package torch."""
        contained = {library.name for library in (site / "shmem_kv/lib").iterdir()}
        files = [*site.glob("shmem_*/*.so"), *site.glob("shmem_kv/lib/*"), *site.glob("shmem_kv/bin/*")]
        self.assertGreaterEqual(len(files), 7)
        for file in files:
            dynamic = self.command("readelf", "-dW", file)
            needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
            self.assertTrue(needed, str(file))
            missing = [one for one in needed if one not in contained and not EVERYWHERE.fullmatch(one)]
            others = [one for one in missing if file.parent.name != "shmem_torch" or not re.match("lib(torch|c10)", one)]
            self.assertEqual(others, [], str(file))
            for path in ":".join(re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", dynamic)).split(":"):
                self.assertRegex(path, r"^(\$ORIGIN|$)", str(file))
            if contained & set(needed):
                self.assertIn("RUNPATH", dynamic, str(file))

    def two(self, python, environment, folder, program, arguments):
        """Runs two processes of a program, and returns what they print. The second gets the first one's first line."""
        processes = []

        def start(*more):
            command = [python, "-c", program, *more]
            processes.append(
                subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True)
            )

        try:
            start(*arguments[0])
            start(*(arguments[1] or [processes[0].stdout.readline().strip()]))
            printed = [process.communicate(timeout=300)[0] for process in processes]
            self.assertEqual([process.returncode for process in processes], [0, 0])
            return printed
        finally:
            for process in processes:
                process.kill()
                process.communicate()

    def check_name(self, wheel):
        self.assertRegex(wheel.name, r"^shmem_kv-[0-9.]+-cp3[0-9]+-cp3[0-9]+-manylinux_2_[0-9]+_\w+\.whl$")
        here = int(platform.libc_ver()[1].split(".")[1])
        self.assertLessEqual(int(re.search(r"manylinux_2_(\d+)", wheel.name)[1]), here)

    def environment(self, **more):
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "GBA_BIN")}
        return environment | {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONWARNINGS": "ignore"} | more

    def check_commands(self, venv, environment, folder):
        """oshrun with two PEs, and kv_exchange: put through one process, got by another."""
        printed = self.command(
            venv / "bin/oshrun", "-n", "2", "--gba", "off", "--timeout", "300", venv / "bin/python", "-c", USE_OSHRUN,
            env=environment, cwd=folder,
        )  # fmt: skip
        self.assertEqual(printed.splitlines(), ["2 1.0"] * 2)
        self.assertIn("UCX", self.command(venv / "bin/shmem_info", "--build", env=environment))
        name = f"wheel-{os.getpid()}"
        tool = venv / "bin/kv_exchange"
        serve = subprocess.Popen([tool, "serve", name], env=environment, stdout=subprocess.DEVNULL)
        try:
            self.command(tool, "put", "--limit", "300", name, "greeting", input="hello", env=environment)
            deadline = time.monotonic() + 300
            command = [tool, "get", name, "greeting"]  # it waits for a second until it knows the member that serves
            while (got := subprocess.run(command, env=environment, capture_output=True, text=True)).returncode != 0:
                self.assertLess(time.monotonic(), deadline, got.stderr)
            self.assertEqual(got.stdout, "hello")
        finally:
            serve.terminate()
            # The command becomes the program, which handles signals itself.
            self.assertEqual(serve.wait(300), 0)

    def check_torch(self, python, environment, folder, version):
        (folder / "store").mkdir()
        arguments = [[folder / "store/one", str(rank)] for rank in (0, 1)]
        self.assertEqual(self.two(python, environment, folder, USE_TORCH, arguments), [version + "\n"] * 2)
        import_torch = "import torch; print(torch.__version__)"
        numbers = self.command(python, "-c", import_torch, env=environment).split(".")
        if [int(one) for one in numbers[:2]] >= [2, 5]:  # it loads what a wheel has for it
            program = USE_TORCH.replace(", shmem_torch", "", 1).replace("tensor in (", "tensor in [] and (")
            program = re.sub(r"assert shmem_torch.*\n.*\n", "print('by itself')\n", program)
            arguments = [[folder / "store/two", str(rank)] for rank in (0, 1)]
            self.assertEqual(self.two(python, environment, folder, program, arguments), ["by itself\n"] * 2)

    def test_of_a_build_folder(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            environment = self.environment()
            self.command(TREE / "scripts/wheel.sh", "--from", BUILD, folder / "out", env=environment)
            (wheel,) = (folder / "out").iterdir()
            self.check_name(wheel)
            venv = folder / "made here"  # a place with a space, as others have it
            self.command(sys.executable, "-m", "venv", "--system-site-packages", venv, env=environment)
            self.command(venv / "bin/pip", "install", "--no-deps", wheel, env=environment)
            (site,) = venv.glob("lib/python3*/site-packages")
            self.check_needed(site)
            self.check_commands(venv, environment, folder)
            moved = folder / "moved"
            venv.rename(moved)
            said = self.command(moved / "bin/python", "-c", USE, env=environment, cwd=folder)
            version, module = said.split()
            self.assertTrue(module.startswith(str(moved)), module)
            if (moved / site.relative_to(venv) / "shmem_torch").exists():
                self.check_torch(moved / "bin/python", environment, folder, version)
            else:
                print("without shmem_torch, which the build folder has not")
            self.command(moved / "bin/python", "-m", "pip", "uninstall", "-y", "shmem-kv", env=environment)
            self.assertEqual([*moved.rglob("*shmem*"), *moved.glob("bin/oshrun")], [])

    def test_of_the_source_distribution(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            tree = folder / "tree"
            shutil.copytree(TREE, tree, ignore=not_source)
            pip = [sys.executable, "-m", "pip", "--no-cache-dir"]
            environment = self.environment(
                CMAKE_BUILD_PARALLEL_LEVEL="2",
                CMAKE_ARGS="-DGBA_WERROR=ON",  # like other builds of the tree, for the compiler's cache
            )
            self.command(sys.executable, "setup.py", "-q", "sdist", "-d", folder / "source", cwd=tree, env=environment)
            (source,) = (folder / "source").iterdir()
            build = [*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", folder / "out", source]
            self.command(*build, env=environment, cwd=folder)
            (wheel,) = (folder / "out").iterdir()
            self.check_name(wheel)
            names = zipfile.ZipFile(wheel).namelist()
            libraries = [rf"shmem_kv/lib/{one}\.so\.\d+" for one in ("libshmem", "libkvexchange", "libgba")]
            for pattern in (r"shmem_kv/_core.*\.so$", r"shmem_kv/_exchange_core.*\.so$", *libraries):
                self.assertTrue(any(re.search(pattern, one) for one in names), f"{pattern}: {names}")
            adapters = [f"shmem_kv/adapters/{one}.py" for one in ("__init__", "vllm", "sglang", "lmcache")]
            for one in ("shmem_kv/py.typed", "shmem_kv/_core.pyi", "shmem_kv/_exchange_core.pyi", "shmem_kv/_version.py", *adapters):
                self.assertIn(one, names)
            site = folder / "site-packages"
            self.command(*pip, "install", "--no-deps", "--target", site, wheel, env=environment)
            self.check_needed(site)
            environment["PYTHONPATH"] = str(site)
            said = self.command(sys.executable, "-c", USE, env=environment, cwd=folder)
            self.assertEqual(said.split()[1], str(site / "shmem_kv/__init__.py"))
            printed = self.two(sys.executable, environment, folder, USE_TWO, [[], None])
            self.assertEqual([one.split()[-1] for one in printed], ["1.0"] * 2)
            if any(one.startswith("shmem_torch/") for one in names):
                self.assertIn("shmem_torch/py.typed", names)
                self.check_torch(sys.executable, environment, folder, said.split()[0])
            elif importlib.util.find_spec("torch") is not None:
                print("without shmem_torch: PyTorch's headers are missing")


if __name__ == "__main__":
    unittest.main(verbosity=0)

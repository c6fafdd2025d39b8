# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of pyproject.toml: CMake builds, and what it has built is laid out for a folder of Python packages.

shmem_kv/lib has libshmem, libkvexchange and libgba, with those that they need and that not every Linux has (as the
policies of manylinux see it): libsodium. UCX stays the system's: it must fit its network. shmem_kv/bin has the programs.
shmem_torch is part of the wheel if PyTorch and its headers are found; a build with isolation has none. CMAKE_ARGS has
further arguments for CMake, such as -DSHMEM_TORCH=ON. GBA_WHEEL_FROM names a build folder whose files are taken as they
are: scripts/wheel.sh.
"""

import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

TREE = pathlib.Path(__file__).resolve().parent
BUILT = os.environ.get("GBA_WHEEL_FROM")
FOLDER = pathlib.Path(BUILT).resolve() / "wheel" if BUILT else TREE / "build-wheel"  # setuptools' own "build" may be CMake's
PROGRAMS = ("oshrun", "kv_exchange", "shmem_info")  # [project.scripts] has their commands
LIBRARIES = ("libshmem", "libkvexchange", "libgba")
MODULES = {"shmem_kv": "shmem_kv_core", "shmem_torch": "shmem_torch_core"}

# What the policies of manylinux take for granted, and the first of them, by the release of glibc, for the versions of
# libstdc++'s symbols: GLIBCXX_3.4.30 and older are in each system that is as new as glibc 2.35.
EVERYWHERE = re.compile(r"(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so\.\d+")
GLIBC_OF_GLIBCXX = {29: 34, 30: 35, 33: 39}


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def add_needed(folder):
    """Copies what the libraries need beside them, where their RUNPATH ($ORIGIN) finds it."""
    for library in [one for name in LIBRARIES for one in folder.glob(f"{name}.so.*")]:
        for name, path in re.findall(r"(\S+) => (\S+)", output_of("ldd", library)):
            if path == "not":
                raise RuntimeError(f"{library} needs {name}, which is not found")
            if not EVERYWHERE.fullmatch(name) and not (folder / name).exists():
                shutil.copy(path, folder / name)


def set_runpath(file, runpath):
    """Where the file looks for what not every Linux has, by the command that CMake's own installations use.

    The place for it must be there, and as long; CMake makes it so for the paths of its installations.
    """
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-dW", file))
    if not all(EVERYWHERE.fullmatch(name) for name in needed):
        script = file.with_suffix(".cmake")
        script.write_text(f"file(RPATH_SET FILE [[{file}]] NEW_RPATH [[{runpath}]])\n")
        output_of("cmake", "-P", script)
        script.unlink()


def lay_out(built, site):
    """Copies modules, libraries and programs of a build folder into a folder of packages, stripped and to be moved."""
    modules = [name for name in MODULES if any((built / "lib/python" / name).glob("_*.so"))]
    if "shmem_kv" not in modules:
        raise SystemExit(f"{built} has no shmem_kv: CMake says why, and {built}/bin/shmem_info --build")
    shutil.rmtree(site, ignore_errors=True)
    for name in modules:
        shutil.copytree(built / "lib/python" / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(built / "lib/python/shmem", site / "shmem", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TREE / "python/shmem_entry_points.py", site)
    package = site / "shmem_kv"
    (package / "bin").mkdir()
    (package / "lib").mkdir()
    runpaths = {file: "$ORIGIN/lib" for file in package.glob("_*core*.so")}
    runpaths |= {file: "$ORIGIN/../shmem_kv/lib" for file in site.glob("shmem_torch/_C*.so")}
    for name in PROGRAMS:
        runpaths[pathlib.Path(shutil.copy(built / "bin" / name, package / "bin"))] = "$ORIGIN/../lib"
    libraries = [one for name in LIBRARIES for one in (built / "lib").glob(f"{name}.so.?")]
    for name in libraries:  # a wheel has no links: only the names that the modules ask for
        runpaths[pathlib.Path(shutil.copy(name, package / "lib"))] = "$ORIGIN"
    for file, runpath in runpaths.items():
        output_of("strip", "--strip-unneeded", file)
        set_runpath(file, runpath)
    add_needed(package / "lib")


def pybind11():
    try:
        import pybind11 as found
    except ImportError:
        return []  # CMake finds Debian's pybind11-dev
    return [f"-DSHMEM_PYBIND11={found.get_include()}"]


def build(folder, parallel):
    arguments = [
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",  # as the preset "release", whose compiler cache it can use
        "-DGBA_TESTS=OFF",
        "-DGBA_BENCH=OFF",
        "-DGBA_EXAMPLES=OFF",
        f"-DSHMEM_PYTHON={sys.executable}",
        "-DSHMEM_PYTHON_MODULE=ON",
    ]
    arguments += pybind11() + shlex.split(os.environ.get("CMAKE_ARGS", ""))
    subprocess.run(["cmake", "-S", TREE, "-B", folder, *arguments], check=True)
    known = output_of("cmake", "--build", folder, "--target", "help")
    targets = [*PROGRAMS, *(name for name in MODULES.values() if name in known)]
    jobs = ["--parallel", str(parallel or os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or os.cpu_count() or 1)]
    subprocess.run(["cmake", "--build", folder, *jobs, "--target", *targets], check=True)


class BuildByCMake(build_ext):
    """Ignores the extensions: they only make the wheel one for this platform."""

    def run(self):
        built = pathlib.Path(BUILT or self.build_temp).resolve()
        if not BUILT:
            build(built, self.parallel)
        lay_out(built, pathlib.Path(self.build_lib).resolve())

    def get_outputs(self):
        return [str(one) for one in pathlib.Path(self.build_lib).rglob("*") if one.is_file()]


class ManyLinux(bdist_wheel):
    """Names the wheel after the oldest glibc, and libstdc++ of its time, that have all symbols that its files use."""

    def get_tag(self):
        site = pathlib.Path(self.get_finalized_command("build_ext").build_lib)
        files = [one for one in site.rglob("*") if one.is_file() and one.read_bytes()[:4] == b"\x7fELF"]
        used = output_of("readelf", "-VW", *files)
        glibc, glibcxx = (max(map(int, re.findall(prefix + r"(\d+)", used))) for prefix in (r"GLIBC_2\.", r"GLIBCXX_3\.4\."))
        here = int(platform.libc_ver()[1].split(".")[1])  # for symbols that no policy knows yet
        minor = max(glibc, min((of for newest, of in GLIBC_OF_GLIBCXX.items() if newest >= glibcxx), default=here))
        return (*super().get_tag()[:2], f"manylinux_2_{minor}_{platform.machine()}")


FOLDER.mkdir(exist_ok=True)
setup(
    version=re.search(r"project\(gba VERSION ([0-9.]+)", (TREE / "CMakeLists.txt").read_text())[1],
    ext_modules=[Extension("shmem_kv._core", [])],
    cmdclass={"build_ext": BuildByCMake, "bdist_wheel": ManyLinux},
    options={"build": {"build_base": str(FOLDER)}, "egg_info": {"egg_base": str(FOLDER)}},
)

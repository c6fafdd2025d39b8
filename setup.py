# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of pyproject.toml: CMake builds the modules and the libraries, and installs them into it.

The libraries libshmem and libgba are in shmem_kv/lib, with those that they need and that not every Linux has (as the
policies of manylinux see it): libsodium. UCX stays the system's: it must fit its network. shmem_torch is
part of the wheel if PyTorch and its headers are found; a build with isolation has none. CMAKE_ARGS has further
arguments for CMake, such as -DSHMEM_TORCH=ON.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

TREE = pathlib.Path(__file__).resolve().parent
FOLDER = TREE / "build-wheel"  # setuptools' own "build" may be CMake's
PARTS = {"shmem_kv_core": "python3-shmem-kv", "shmem_torch_core": "python3-shmem-torch"}

# What the policies of manylinux take for granted.
EVERYWHERE = re.compile(r"(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so\.\d+")


def add_needed(folder):
    """Copies what libshmem and libgba need beside them, where their RUNPATH ($ORIGIN) finds it."""
    for library in [*folder.glob("libshmem.so.*"), *folder.glob("libgba.so.*")]:
        listed = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
        for name, path in re.findall(r"(\S+) => (\S+)", listed):
            if path == "not":
                raise RuntimeError(f"{library} needs {name}, which is not found")
            if not EVERYWHERE.fullmatch(name) and not (folder / name).exists():
                shutil.copy(path, folder / name)


def pybind11():
    try:
        import pybind11 as found
    except ImportError:
        return []  # CMake finds Debian's pybind11-dev
    return [f"-DSHMEM_PYBIND11={found.get_include()}"]


class BuildByCMake(build_ext):
    """Ignores the extensions: they only make the wheel one for this platform."""

    def run(self):
        folder = pathlib.Path(self.build_temp).resolve()
        # Relative paths from the modules to the libraries, and no path of this machine.
        arguments = [
            "-DCMAKE_BUILD_TYPE=RelWithDebInfo",  # as the preset "release", whose compiler cache it can use; stripped below
            "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG",
            "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG",
            "-DGBA_TESTS=OFF",
            "-DGBA_BENCH=OFF",
            "-DGBA_EXAMPLES=OFF",
            "-DSHMEM_OWN_FOLDERS=ON",
            "-DCMAKE_INSTALL_LIBDIR=shmem_kv/lib",
            "-DSHMEM_PYTHON_FOLDER=.",
            f"-DSHMEM_PYTHON={sys.executable}",
            "-DSHMEM_PYTHON_MODULE=ON",
        ]
        arguments += pybind11() + shlex.split(os.environ.get("CMAKE_ARGS", ""))
        subprocess.run(["cmake", "-S", TREE, "-B", folder, *arguments], check=True)
        targets = subprocess.run(
            ["cmake", "--build", folder, "--target", "help"], check=True, capture_output=True, text=True
        ).stdout
        parts = {name: part for name, part in PARTS.items() if name in targets}
        jobs = ["--parallel", str(self.parallel or os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or os.cpu_count() or 1)]
        subprocess.run(["cmake", "--build", folder, *jobs, "--target", *parts], check=True)
        target = self.build_lib if not self.inplace else TREE / "python"
        for component in ("libgba", "libshmem", *parts.values()):
            install = ["cmake", "--install", folder, "--prefix", pathlib.Path(target).resolve(), "--strip"]
            subprocess.run([*install, "--component", component], check=True)
        # A wheel has no links, only copies: the names that the modules ask for remain.
        for link in [one for one in pathlib.Path(target).rglob("lib*.so.*") if one.is_symlink()]:
            link.resolve().replace(link)
        add_needed(pathlib.Path(target) / "shmem_kv/lib")

    def get_outputs(self):
        return [str(one) for one in pathlib.Path(self.build_lib).rglob("*") if one.is_file()]


FOLDER.mkdir(exist_ok=True)
setup(
    version=re.search(r"project\(gba VERSION ([0-9.]+)", (TREE / "CMakeLists.txt").read_text())[1],
    ext_modules=[Extension("shmem_kv._core", [])],
    cmdclass={"build_ext": BuildByCMake},
    options={"build": {"build_base": str(FOLDER)}, "egg_info": {"egg_base": str(FOLDER)}},
)

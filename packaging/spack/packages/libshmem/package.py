# SPDX-License-Identifier: Apache-2.0
"""Spack's recipe. docs/deployment.md shows how to use it."""
from spack.package import *


class Libshmem(CMakePackage):
    """OpenSHMEM 1.6 for one node or several, with barriers in a switch (libgba), and an emulated device."""

    # There is no place to fetch releases from: build a checkout with spack develop.
    version("0.1.0")

    license("Apache-2.0")

    variant("ucx", default=True, description="Jobs on several nodes")
    variant("pmix", default=True, description="Start of jobs by mpirun and srun")
    variant("metrics", default=False, description="Metrics of exchanges over HTTP")
    variant("mpi", default=False, description="Start of PEs by MPI (SHMEMX_INIT_WITH_MPI)")
    variant("openmpi", default=False, description="Components for Open MPI 4.1, 5.0 or 6.0")
    variant("python", default=False, description="The Python module shmem_kv")
    variant("torch", default=False, description="The backend of torch.distributed, shmem_torch")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11", type="build")
    depends_on("fmt", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("xxhash@0.8:", type="build")
    depends_on("libsodium")
    depends_on("pciutils")
    depends_on("systemd")
    # Only their headers are needed to build, but the libraries are loaded when a job needs them.
    depends_on("ucx@1.13:", when="+ucx")
    depends_on("pmix@4:", when="+pmix")
    depends_on("libmicrohttpd@0.9.71:", when="+metrics")
    depends_on("mpi", when="+mpi")
    depends_on("openmpi@4.1,5.0", when="+openmpi")
    depends_on("python@3.9:", when="+python", type=("build", "link", "run"))
    depends_on("py-numpy", when="+python", type=("build", "run"))
    depends_on("py-pybind11", when="+python", type="build")
    depends_on("py-torch@1.13:", when="+torch", type=("build", "link", "run"))

    conflicts("~python", when="+torch", msg="shmem_torch needs shmem_kv")
    conflicts("%gcc@:11", msg="libshmem needs C++20 of GCC 12 or newer")
    conflicts("platform=darwin", msg="libshmem needs Linux")
    conflicts("platform=windows", msg="libshmem needs Linux")

    def cmake_args(self):
        args = [
            self.define("GBA_TESTS", False),
            self.define("GBA_BENCH", False),
            self.define("GBA_EXAMPLES", False),
            self.define_from_variant("SHMEM_UCX", "ucx"),
            self.define_from_variant("SHMEM_PMIX", "pmix"),
            self.define_from_variant("SHMEM_METRICS", "metrics"),
            self.define_from_variant("SHMEM_MPI", "mpi"),
            self.define_from_variant("GBA_OPENMPI", "openmpi"),
            self.define_from_variant("SHMEM_PYTHON_MODULE", "python"),
            self.define_from_variant("SHMEM_TORCH", "torch"),
        ]
        if self.spec.satisfies("+python"):
            python = self.spec["python"]
            folder = join_path("lib", f"python{python.version.up_to(2)}", "site-packages")
            args.append(self.define("SHMEM_PYTHON", python.command.path))
            args.append(self.define("SHMEM_PYTHON_FOLDER", folder))
        return args

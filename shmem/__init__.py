# SPDX-License-Identifier: Apache-2.0
"""The sources of libshmem: not a Python module, which without this file Python would make of the folder."""

raise ImportError(
    f"shmem: {__path__[0]} has the sources of libshmem; the Python modules are shmem_kv and shmem_torch: "
    "build them and set PYTHONPATH=build/lib/python, or install the wheel of scripts/wheel.sh (docs/python.md)"
)

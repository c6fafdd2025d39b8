# SPDX-License-Identifier: Apache-2.0
"""The sources of libshmem, in a folder that Python finds first in the source tree: the module is another one."""

import os
import sys
from importlib import machinery, util

_here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_spec = machinery.PathFinder.find_spec(__name__, [one for one in sys.path if os.path.abspath(one) != _here])
if _spec is None or _spec.loader is None:
    raise ImportError(
        f"shmem: {__path__[0]} has the sources of libshmem; the Python modules are shmem (of Ascend SHMEM), shmem_kv and "
        "shmem_torch: build them and set PYTHONPATH=build/lib/python, or install the wheel of scripts/wheel.sh "
        "(docs/python.md)"
    )
sys.modules[__name__] = util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules[__name__])

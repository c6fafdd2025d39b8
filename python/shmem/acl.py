# SPDX-License-Identifier: Apache-2.0
"""As much of CANN's Python module ``acl`` as programs with this package use: ``from shmem import acl``.

A stream is a thread that executes a queue; device memory is memory. Calls return what those of CANN do: a code, or what
was made and a code; 0 is success.
"""

from shmem_kv._core.ascend import rt  # noqa: F401

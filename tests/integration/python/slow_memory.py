# SPDX-License-Identifier: Apache-2.0
"""For tests: memory whose first reader waits, so that a copy is under way for as long as the test likes."""

import contextlib
import ctypes
import mmap
import signal
import threading

import numpy as np

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
_libc.signal.restype = ctypes.c_void_p


class SlowMemory:
    """``array``: whole pages. A thread that reads them sets ``reached`` and goes on after ``go`` is set. The reader must
    not have the interpreter's lock: the handler of its page fault is in Python."""

    def __init__(self, nbytes):
        self.array = np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)
        self.reached, self.go = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def unreadable(self):
        """No reader gets past the first byte before ``go``."""

        def wait(_number):
            self.reached.set()
            self.go.wait()
            self._protect(mmap.PROT_READ | mmap.PROT_WRITE)

        handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(wait)
        before = _libc.signal(signal.SIGSEGV, ctypes.cast(handler, ctypes.c_void_p))
        self._protect(0)
        try:
            yield
        finally:
            self.go.set()
            self._protect(mmap.PROT_READ | mmap.PROT_WRITE)
            _libc.signal(signal.SIGSEGV, before)

    def _protect(self, what):
        if _libc.mprotect(self.array.ctypes.data, self.array.nbytes, what) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")

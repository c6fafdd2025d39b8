# SPDX-License-Identifier: Apache-2.0
"""Jobs, buffers in symmetric memory, copies between PEs, signals, barriers and teams::

    import shmem.core as core

    core.init(mem_size=64 << 20, initializer_method="torch")  # the ranks of torch.distributed
    buffer = core.buffer(1024)
    core.put(buffer, torch.arange(256, dtype=torch.int32), remote_pe=1)
    core.barrier()
    print(buffer.tensor(256, torch.int32))
    core.finalize()

Calls with a stream happen in its order, and return at once; ``shmem.acl`` makes streams, 0 is the stream that there is,
and :func:`synchronize` waits for it. Where a call takes a :class:`Buffer`, a contiguous CPU tensor or array will do: a
copy of one is done when the call returns, so that its memory may end then. Collective: init,
finalize, buffer, free, barrier and the calls that make and destroy teams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

from shmem import _pyshmem
from shmem._pyshmem import UniqueId as UniqueID
from shmem_kv import _core
from shmem_kv._core import ascend

from . import direct, utils
from .direct import ComparisonType, SignalOp
from .utils import AclshmemError, AclshmemInvalid, Buffer, memory_of

__all__ = [
    "AclshmemError",
    "AclshmemInvalid",
    "Buffer",
    "ComparisonType",
    "SignalOp",
    "UniqueID",
    "barrier",
    "buffer",
    "finalize",
    "free",
    "get",
    "get_peer_buffer",
    "get_unique_id",
    "get_version",
    "init",
    "put",
    "put_signal",
    "quiet",
    "signal_op",
    "signal_wait",
    "synchronize",
    "team_destroy",
    "team_split_2d",
    "team_split_strided",
]


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Raises AclshmemInvalid for what the library refuses, AclshmemError for other failures."""
    try:
        yield
    except AclshmemInvalid as error:
        raise AclshmemInvalid(f"{what}: {error}") from None
    except (ValueError, TypeError) as error:
        raise AclshmemInvalid(f"{what}: {error}".replace(f"{what}: {what}:", f"{what}:")) from error
    except (OSError, RuntimeError, MemoryError) as error:
        raise AclshmemError(f"{what}: {error}".replace(f"{what}: {what}:", f"{what}:")) from error


def get_version() -> str:
    """``"libaclshmem_version=X.Y"``."""
    return "libaclshmem_version={}.{}".format(*_pyshmem.aclshmem_info_get_version())


def get_unique_id(empty: bool = False) -> UniqueID:
    """What starts a job, made by the process that will be PE 0 and sent to the others, which keep it secret. ``empty`` is
    ignored."""
    del empty
    with _failing("get_unique_id"):
        return _pyshmem.aclshmem_get_unique_id()


def init(
    device: int | None = None,
    uid: bytes | None = None,
    rank: int | None = None,
    nranks: int | None = None,
    mpi_comm: object = None,
    initializer_method: str = "",
    mem_size: int | None = None,
) -> None:
    """Makes this process a PE with ``mem_size`` bytes of symmetric memory.

    ``initializer_method`` is ``"uid"``: PE ``rank`` of ``nranks``, by the ``uid`` of :func:`get_unique_id`; or
    ``"torch"``: the PEs are the ranks of the default group of ``torch.distributed``, which sends the id. ``device`` and
    ``mpi_comm`` are ignored.
    """
    del device, mpi_comm
    if mem_size is None:
        raise AclshmemInvalid("init: mem_size is missing")
    if initializer_method == "torch":
        rank, nranks, uid = _from_torch()
    elif initializer_method != "uid":
        raise AclshmemInvalid(f"init: initializer_method is '{initializer_method}', not 'uid' or 'torch'")
    missing = [name for name, value in (("uid", uid), ("rank", rank), ("nranks", nranks)) if value is None]
    if missing:
        raise AclshmemInvalid(f"init: {' and '.join(missing)} missing")
    if not isinstance(uid, (bytes, bytearray, memoryview)):
        raise AclshmemInvalid("init: uid is not the bytes of get_unique_id()")
    numbers = {"rank": rank, "nranks": nranks, "mem_size": mem_size}
    for name, value in numbers.items():
        if not isinstance(value, Integral) or value < 0:
            raise AclshmemInvalid(f"init: {name} is {value!r}")
    with _failing("init"):
        ascend.start(*map(int, numbers.values()), bytes(uid))


def _from_torch() -> tuple[int, int, bytes]:
    """Number and count of the ranks of the default group, and a unique id that rank 0 has made."""
    import torch.distributed as dist

    if not dist.is_initialized():
        raise AclshmemInvalid("init: 'torch' needs torch.distributed.init_process_group() first")
    ids: list[Any] = [None]
    if dist.get_rank() == 0:
        try:
            ids = [bytes(get_unique_id())]
        except AclshmemError as error:
            ids = [str(error)]  # to all, which wait for it
    dist.broadcast_object_list(ids, src=0)
    if isinstance(ids[0], str):
        raise AclshmemError(ids[0])
    return dist.get_rank(), dist.get_world_size(), ids[0]


def finalize() -> None:
    """Ends the library. Tensors of its memory keep their contents."""
    with _failing("finalize"):
        _pyshmem.stop()


def buffer(size: int, release: bool = False, except_on_del: bool = True) -> Buffer:
    """``size`` bytes of symmetric memory, not initialized, the same on all PEs. The other arguments are ignored."""
    del release, except_on_del
    with _failing("buffer"):
        return Buffer(_pyshmem.aclshmem_malloc(size), size)


def _check_buffer(buf: object, call: str) -> None:
    if not isinstance(buf, Buffer):
        raise AclshmemInvalid(f"{call}: buf is a {type(buf).__name__}, not a Buffer")


def free(buf: Buffer) -> None:
    """Frees what :func:`buffer` has allocated."""
    _check_buffer(buf, "free")
    with _failing("free"):
        _pyshmem.aclshmem_free(buf.addr)


def get_peer_buffer(buf: Buffer, pe: int) -> Buffer:
    """Where the memory of PE ``pe``, of this node, that belongs to ``buf`` can be read and written directly."""
    _check_buffer(buf, "get_peer_buffer")
    with _failing("get_peer_buffer"):
        _core.require("get_peer_buffer")
        address = _pyshmem.aclshmem_ptr(buf.addr, pe)
    if address == 0:
        raise AclshmemError(f"get_peer_buffer: {buf} is not symmetric, or PE {pe} does not exist or is on another node")
    return Buffer(address, buf.length)


def _copy(call: Callable[..., None], dst: Any, src: Any, *rest: Any) -> None:
    """Copies all of `src`. What is not a Buffer may end with the call."""
    to, room, kept_to = memory_of(dst, "dst", written=True)
    source, size, kept_source = memory_of(src, "src")
    if size > room:
        raise AclshmemInvalid(f"src has {size} bytes, dst {room}")
    call(to, source, size, *rest)
    del kept_to, kept_source
    if call is not _pyshmem.aclshmemx_putmem_signal and not (isinstance(dst, Buffer) and isinstance(src, Buffer)):
        ascend.synchronize_stream(rest[-1])


def _signal(signal_var: Any) -> int:
    address, size, _ = memory_of(signal_var, "signal_var", written=True)
    if size < 4:
        raise AclshmemInvalid(f"signal_var has {size} bytes, and a signal 4")
    return address


def put(dst: Any, src: Any, remote_pe: int = -1, stream: int | None = None) -> None:
    """Copies ``src`` of this PE to ``dst``, which is symmetric, of PE ``remote_pe``."""
    with _failing("put"):
        _copy(_pyshmem.aclshmemx_putmem_on_stream, dst, src, remote_pe, stream)


def get(dst: Any, src: Any, remote_pe: int = -1, stream: int | None = None) -> None:
    """Copies ``src``, which is symmetric, of PE ``remote_pe`` to ``dst`` of this PE."""
    with _failing("get"):
        _copy(_pyshmem.aclshmemx_getmem_on_stream, dst, src, remote_pe, stream)


def put_signal(
    dst: Any,
    src: Any,
    signal_var: Any,
    signal_val: int,
    signal_operation: SignalOp,
    remote_pe: int = -1,
    stream: object = None,
) -> None:
    """As :func:`put`, and then sets the signal ``signal_var``, a symmetric int32, of that PE to ``signal_val``, or adds
    that to it. Done when it returns; ``stream`` is ignored."""
    del stream
    with _failing("put_signal"):
        signal = _signal(signal_var)
        _copy(_pyshmem.aclshmemx_putmem_signal, dst, src, signal, signal_val, signal_operation, remote_pe)


def _required(stream: int | None, call: str) -> int:
    if stream is None:
        raise AclshmemInvalid(f"{call}: it needs a stream; 0 is the one that there is")
    return stream


def signal_op(
    signal_var: Any, signal_val: int, signal_operation: SignalOp, remote_pe: int = -1, stream: int | None = None
) -> None:
    """Sets the signal of PE ``remote_pe``, or adds to it, in the order of ``stream``."""
    with _failing("signal_op"):
        _pyshmem.aclshmemx_signal_op_on_stream(
            _signal(signal_var), signal_val, signal_operation, remote_pe, _required(stream, "signal_op")
        )


def signal_wait(signal_var: Any, signal_val: int, signal_operation: ComparisonType, stream: int | None) -> None:
    """What comes later in ``stream`` waits until the signal of this PE compares so with ``signal_val``."""
    with _failing("signal_wait"):
        _pyshmem.aclshmemx_signal_wait_until_on_stream(
            _signal(signal_var), signal_operation, signal_val, _required(stream, "signal_wait")
        )


def quiet(stream: int | None) -> None:
    """What comes later in ``stream`` begins when the copies of this PE are complete."""
    with _failing("quiet"):
        _pyshmem.aclshmemx_quiet_on_stream(_required(stream, "quiet"))


def synchronize(stream: int | None = None) -> None:
    """Waits for the work of a stream, and raises what has failed in it."""
    with _failing("synchronize"):
        ascend.synchronize_stream(stream)


def barrier(team: int = 0, stream: int | None = None) -> None:
    """All members of the team, 0 being all PEs, arrive, and copies before it are complete. With a stream: in its order."""
    with _failing("barrier"):
        if stream is None:
            _pyshmem.aclshmem_barrier(team)
        else:
            _pyshmem.aclshmemx_barrier_on_stream(team, stream)


def team_split_strided(parent: int, start: int, stride: int, size: int) -> int:
    """A team of ``size`` members of ``parent``, from ``start`` on, ``stride`` apart; -1 on other PEs."""
    with _failing("team_split_strided"):
        return _pyshmem.team_split_strided(parent, start, stride, size)


def team_split_2d(parent: int, x_range: int) -> tuple[int, int]:
    """The teams of this PE's row and column, with ``x_range`` PEs in a row."""
    with _failing("team_split_2d"):
        return _pyshmem.team_split_2d(parent, x_range)


def team_destroy(team: int) -> None:
    """Ends a team. Collective over its members."""
    with _failing("team_destroy"):
        _pyshmem.team_destroy(team)

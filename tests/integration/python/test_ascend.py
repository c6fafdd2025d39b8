# SPDX-License-Identifier: Apache-2.0
"""The package shmem, of Ascend SHMEM: each test starts the PEs that it needs, by a unique id, an address or torch."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

BEGIN = """
import os, sys, time
import numpy as np
import shmem
import shmem.core as core
from shmem import acl
me, pes, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
after, before = (me + 1) % pes, (me - 1) % pes
def start():
    path = folder + "/id"
    if me == 0:
        with open(path + ".new", "wb") as file:
            file.write(core.get_unique_id())
        os.rename(path + ".new", path)
    while not os.path.exists(path):
        time.sleep(0.01)
    with open(path, "rb") as file:
        core.init(uid=file.read(), rank=me, nranks=pes, mem_size=32 << 20, initializer_method="uid")
def refused(kind, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"accepted: {arguments}")
def read(buffer):
    host = np.zeros(buffer.length // 4, np.int32)
    assert acl.rt.memcpy(host.ctypes.data, host.nbytes, buffer.addr, buffer.length, 2) == 0
    return host
def write(buffer, values):
    values = np.asarray(values, np.int32)
    assert acl.rt.memcpy(buffer.addr, buffer.length, values.ctypes.data, values.nbytes, 1) == 0
"""
HAS_TORCH = importlib.util.find_spec("torch") is not None


class Ascend(unittest.TestCase):
    def run_pes(self, program, pes=3):
        """Runs the program in so many processes; all of them succeed."""
        with tempfile.TemporaryDirectory() as folder:
            running = [
                subprocess.Popen(
                    [sys.executable, "-c", BEGIN + program, str(pe), str(pes), folder],
                    env=os.environ,
                    cwd=folder,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                for pe in range(pes)
            ]
            outputs = [process.communicate(timeout=240)[0] for process in running]
        for pe, process in enumerate(running):
            self.assertEqual(process.returncode, 0, f"PE {pe}: {outputs[pe]}")
        return outputs

    def test_copies_signals_and_streams(self):
        self.run_pes("""
start()
assert core.direct.init_status() == core.direct.InitStatus.INITIALIZED
assert (core.direct.my_pe(), core.direct.n_pes(), shmem.pe_count()) == (me, pes, pes)
sent, received, signal = core.buffer(4096), core.buffer(4096), core.buffer(4)
assert received.addr != 0 and received.length == 4096 and received == core.Buffer(received.addr, 4096)
write(sent, me * 1000 + np.arange(1024)), write(received, np.zeros(1024)), write(signal, [0])
core.barrier()
core.put_signal(received, sent, signal, 5, core.SignalOp.SIGNAL_SET, after)
shmem.aclshmem_signal_wait_until(signal.addr, core.ComparisonType.CMP_EQ, 5)
assert (read(received) == before * 1000 + np.arange(1024)).all()
core.barrier()
core.put_signal(received, sent, signal, 2, core.SignalOp.SIGNAL_ADD, after)
shmem.aclshmem_signal_wait_until(signal.addr, core.ComparisonType.CMP_GE, 7)
core.barrier()
# A stream: the get of what the other PE has when its signal has come.
stream, code = acl.rt.create_stream()
assert code == 0
write(received, np.zeros(1024))
core.signal_wait(signal, 9, core.ComparisonType.CMP_EQ, stream)
core.get(received, sent, before, stream)
core.quiet(stream)
time.sleep(0.05)
assert not read(received).any(), "the stream did not wait"
core.barrier()
other, _ = acl.rt.create_stream()
core.signal_op(signal, 9, core.SignalOp.SIGNAL_SET, after, other)
assert acl.rt.synchronize_stream(stream) == 0
assert (read(received) == before * 1000 + np.arange(1024)).all()
core.synchronize(other)
assert acl.rt.destroy_stream(stream) == acl.rt.destroy_stream(other) == 0
# The stream that there is, and arrays, whose memory may end.
core.barrier()
core.put(received, np.full(1024, 7 + me, np.int32), after)
core.barrier()
assert (read(received) == 7 + before).all()
host = np.zeros(1024, np.int32)
core.get(host, received, after)
assert (host == 7 + me).all()
# Single values, and memory of another PE as an address.
core.barrier()
shmem.aclshmem_float_p(received.addr, 2.5 + me, after)
core.barrier()
assert shmem.aclshmem_float_g(received.addr, me) == 2.5 + before
peer = core.get_peer_buffer(received, after)
assert np.float32(read(core.Buffer(peer.addr, 4)).view(np.float32)[0]) == 2.5 + me
core.barrier(stream=0)
core.synchronize()
zeroed = shmem.aclshmem_calloc(16, 4)
assert not read(core.Buffer(zeroed, 64)).any() and shmem.aclshmem_align(4096, 8) % 4096 == 0
assert shmem.aclshmemx_get_heap_base() <= zeroed
shmem.aclshmem_free(zeroed)
for buffer in (sent, received, signal):
    core.free(buffer)
core.finalize()
assert core.direct.init_status() == core.direct.InitStatus.NOT_INITIALIZED
""")

    def test_teams(self):
        self.run_pes(
            """
start()
team = core.team_split_strided(0, 0, 2, 2)
assert (team >= 0) == (me != 1), team
assert (core.direct.team_my_pe(team), core.direct.team_n_pes(team)) == ([0, -1, 1, -1][me], -1 if me % 2 else 2)
if me != 1 and me != 3:
    assert shmem.team_translate_pe(team, 1, 0) == 2
    core.barrier(team)
core.barrier()
row, column = core.team_split_2d(0, 2)
assert [core.direct.team_my_pe(team) for team in (row, column)] == [me % 2, me // 2]
config = shmem.TeamConfig()
assert shmem.aclshmem_team_get_config(row, config) == 0
refused(core.AclshmemInvalid, "do not split it alike", core.team_split_strided, 0, me, 1, 1)
core.team_destroy(row)
core.finalize()
""".replace("(me != 1)", "(me % 2 == 0)"),
            pes=4,
        )

    def test_what_is_refused(self):
        self.run_pes("""
refused(core.AclshmemError, "does not run", core.buffer, 8)
refused(core.AclshmemInvalid, "mem_size is missing", core.init, initializer_method="uid")
refused(core.AclshmemInvalid, "is 'mpi', not 'uid' or 'torch'", core.init, initializer_method="mpi", mem_size=1)
refused(core.AclshmemInvalid, "uid and rank missing", core.init, initializer_method="uid", mem_size=1, nranks=1)
refused(core.AclshmemInvalid, "mem_size is -1", core.init, 0, b"abc", 0, 1, None, "uid", -1)
refused(core.AclshmemInvalid, "rank is 'x'", core.init, 0, b"abc", "x", 1, None, "uid", 1)
refused(core.AclshmemInvalid, "uid is not the bytes", core.init, 0, "abc", 0, 1, None, "uid", 1)
refused(core.AclshmemError, "does not run", core.get_peer_buffer, core.Buffer(64, 64), 0)
refused(core.AclshmemInvalid, "has 3 bytes, not", core.init, 0, b"abc", 0, 1, None, "uid", 1 << 20)
assert shmem.aclshmem_finalize() == -5
start()
refused(core.AclshmemError, "runs already", core.init, 0, bytes(200), 0, 1, None, "uid", 1 << 20)
buffer, array = core.buffer(64), np.arange(4)
refused(core.AclshmemInvalid, "there is no PE 99", core.put, buffer, array, 99)
refused(core.AclshmemInvalid, "there is no PE -1", core.get, np.zeros(8), buffer)
refused(core.AclshmemInvalid, "src has 800 bytes, dst 64", core.put, buffer, np.arange(100), 0)
refused(core.AclshmemInvalid, "not inside the symmetric heap", core.put, array, array, 0)
refused(core.AclshmemInvalid, "not inside the symmetric heap", core.get, array, core.Buffer(buffer.addr + (1 << 30), 32), 0)
refused(core.AclshmemInvalid, "is not a contiguous tensor", core.put, buffer, array[::2], 0)
for source in (object(), [1, 2], b"12", 5, None):
    refused(core.AclshmemInvalid, f"src is a {type(source).__name__}, and neither", core.put, buffer, source, 0)
read_only = np.frombuffer(b"1234", np.uint8)
refused(core.AclshmemInvalid, "dst is read-only", core.get, read_only, core.Buffer(buffer.addr, 4), 0)
refused(core.AclshmemInvalid, "signal_var has 1 bytes", core.signal_op, core.Buffer(buffer.addr, 1), 1, core.SignalOp.SIGNAL_SET, 0, 0)
for stream in (12345, acl.rt.create_stream()[0]):
    acl.rt.destroy_stream(stream)
    refused(core.AclshmemInvalid, "was destroyed", core.synchronize, stream)
    refused(core.AclshmemInvalid, "was destroyed", core.put, buffer, buffer, 0, stream)
    assert acl.rt.synchronize_stream(stream) != 0
assert acl.rt.free(12345) != 0
memory, code = acl.rt.malloc(64, 0)
assert (code, acl.rt.free(memory)) == (0, 0) and acl.rt.free(memory) != 0
refused(TypeError, "is not a function", shmem.set_extern_logger, 5)
refused(core.AclshmemInvalid, "buf is a int, not a Buffer", core.free, 5)
refused(core.AclshmemInvalid, "buf is a NoneType, not a Buffer", core.get_peer_buffer, None, 0)
refused(core.AclshmemInvalid, "not aligned", core.put_signal, buffer, array, core.Buffer(buffer.addr + 2, 4), 1, core.SignalOp.SIGNAL_SET, 0)
refused(core.AclshmemInvalid, "7 is neither", core.put_signal, buffer, array, buffer, 1, 7, 0)
refused(core.AclshmemInvalid, "needs a stream", core.signal_op, buffer, 1, core.SignalOp.SIGNAL_SET, 0)
refused(core.AclshmemInvalid, "needs a stream", core.quiet, None)
refused(core.AclshmemInvalid, "55 is not a team", core.barrier, 55)
refused(core.AclshmemInvalid, "no memory was allocated at this address", core.free, core.Buffer(buffer.addr + 4, 4))
refused(core.AclshmemError, "PE 77 does not exist", core.get_peer_buffer, buffer, 77)
refused(ValueError, "-1", core.Buffer, 1, -1)
refused(core.AclshmemInvalid, "0 bytes", core.buffer, 0)
core.free(buffer)
refused(core.AclshmemInvalid, "freed before", core.free, buffer)
assert shmem.set_conf_store_tls(False, "") == 0 and shmem.set_conf_store_tls(True, "tlsEnable=1") == -100
core.finalize()
refused(core.AclshmemError, "does not run", core.finalize)
""")

    def test_a_pe_that_dies_and_messages(self):
        outputs = self.run_pes("""
import os
said = []
shmem.set_extern_logger(lambda level, text: said.append(text))
start()
core.barrier()
if me == 1:
    os._exit(0)
refused(core.AclshmemError, "PE 1", core.barrier)
refused(core.AclshmemError, "PE 1", core.finalize)
print("told", bool(said))
""")
        self.assertNotIn("PE 1", outputs[0] + outputs[2], "messages went to standard error as well")

    def test_the_end_waits_for_streams(self):
        self.run_pes("""
start()
buffers = [core.buffer(1 << 20) for _ in range(4)]
streams = [acl.rt.create_stream()[0] for _ in range(4)]
for i in range(40):
    core.put(buffers[i % 4], core.Buffer(buffers[i % 4].addr, 1 << 20), after, streams[i % 4])
core.finalize()

assert core.direct.init_status() == core.direct.InitStatus.NOT_INITIALIZED
""")

    def test_a_refused_end_keeps_the_buffers(self):
        self.run_pes(
            """
import threading
start()
buffer, signal = core.buffer(64), core.buffer(4)
write(signal, [0])
begun = threading.Event()
def wait():
    begun.set()
    shmem.aclshmem_signal_wait_until(signal.addr, core.ComparisonType.CMP_EQ, 1)
waiting = threading.Thread(target=wait)
sys.setswitchinterval(1000)  # it keeps the interpreter until it waits
waiting.start()
begun.wait()
refused(core.AclshmemError, "still under way", core.finalize)
shmem.aclshmem_int32_p(signal.addr, 1, me)
core.signal_op(signal, 1, core.SignalOp.SIGNAL_SET, me, 0)
waiting.join()
core.free(buffer)
core.finalize()
""",
            pes=1,
        )

    def test_by_an_address(self):
        self.run_pes("""
import random
if me == 0:
    port = random.randrange(16384, 32768)  # none that the kernel gives to sockets that ask for any
    with open(folder + "/port.new", "w") as file:
        file.write(str(port))
    os.rename(folder + "/port.new", folder + "/port")
while not os.path.exists(folder + "/port"):
    time.sleep(0.01)
attributes = shmem.InitAttr()
attributes.my_rank, attributes.n_ranks, attributes.local_mem_size = me, pes, 1 << 20
assert shmem.aclshmem_init(shmem.InitAttr()) == -2
assert shmem.aclshmem_init(attributes) != 0, "it has no address, and no launcher says that it is one of three"
with open(folder + "/port") as file:
    attributes.ip_port = "tcp://127.0.0.1:" + file.read()
assert attributes.option_attr.data_op_engine_type == shmem.OpEngineType.MTE
attributes.option_attr.data_op_engine_type = shmem.OpEngineType.ROCE
assert shmem.aclshmem_init(attributes) == 0
assert shmem.aclshmem_init(attributes) == -4
assert (shmem.my_pe(), shmem.pe_count(), shmem.team_my_pe(0)) == (me, pes, me)
assert shmem.aclshmem_info_get_version() == (1, 1) and shmem.aclshmem_info_get_name() == "ACLSHMEM v1.1.1"
assert core.get_version() == "libaclshmem_version=1.1"
shmem.aclshmem_barrier_all()
assert shmem.aclshmem_finialize() == 0
""")

    @unittest.skipUnless(HAS_TORCH, "no PyTorch")
    def test_tensors_and_ranks_of_torch(self):
        self.run_pes(
            """
import torch
import torch.distributed as dist
refused(core.AclshmemInvalid, "init_process_group() first", core.init, mem_size=1, initializer_method="torch")
dist.init_process_group("gloo", init_method="file://" + folder + "/store", rank=me, world_size=pes)
core.init(mem_size=32 << 20, initializer_method="torch")
buffer = core.buffer(1024)
view = buffer.tensor((16, 16), torch.float32)
view.fill_(-1)
refused(core.AclshmemInvalid, "2048 bytes", buffer.tensor, 512, torch.float32)
refused(core.AclshmemInvalid, "not what buffer() has allocated", core.get_peer_buffer(buffer, after).tensor, 4, torch.int8)
core.barrier()
core.put(buffer, torch.full((16, 16), float(me)), after)
core.barrier()
assert torch.equal(view, torch.full((16, 16), float(before)))
half = shmem.aclshmem_create_tensor((4, 8), torch.bfloat16)
half.fill_(me)
core.barrier()
taken = torch.zeros(4, 8, dtype=torch.bfloat16)
core.get(taken, half, after)
assert torch.equal(taken, torch.full((4, 8), float(after), dtype=torch.bfloat16)) and half.device.type == "cpu"
core.barrier()
shmem.aclshmem_free_tensor(half)
refused(core.AclshmemInvalid, "negative bit", core.put, buffer, torch._neg_view(torch.ones(4)), after)
refused(core.AclshmemInvalid, "a tensor of", buffer.tensor, (-1, -4), torch.int8)
refused(core.AclshmemInvalid, "a tensor of", buffer.tensor, None, torch.int8)
freed = core.buffer(64)
kept = freed.tensor(64, torch.uint8)
kept.fill_(9)
core.free(freed)
assert len(kept.tolist()) == 64
core.finalize()
assert len(kept.tolist()) == 64
assert torch.equal(view, torch.full((16, 16), float(before))), "what a tensor has is kept"
dist.destroy_process_group()
"""
        )


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of the Global Barrier Accelerator, without libgba: "a client, step by step" of uapi/README.md in that order.

gba-fake-device --socket /tmp/gba.sock &
python3 gba_client.py /tmp/gba.sock [MEMBERS [ROUNDS [unsealed]]]

Each member is a connection, and so a port. All of them are in this process, which arrives for each and then waits for
each. With "unsealed" the device may not store to the flags itself, and sends DMA_WRITE messages instead.
"""

import fcntl
import json
import mmap
import os
import select
import socket
import struct
import sys
import time

VERSION, DMA_MAP, REGION_INFO, REGION_IO_FDS, SET_IRQS, READ, WRITE, DMA_WRITE = 1, 2, 5, 6, 8, 9, 10, 12
CONTROL, DOORBELLS, CONFIG, MSIX = 0, 2, 7, 2
CMD, CMD_STATUS, CMD_RESULT, ALLOC, FREE, JOIN, LEAVE = 0x28, 0x30, 0x38, 1, 2, 3, 4
MEMBER_COUNT, MEMBER_MASK, GROUP_CONTROL, RELEASE_ADDR, ENABLE, ARM, IRQ_EN = 4, 0x10, 0x1000, 0x2000, 1, 4, 8
IOVA, PAGE, LIMIT = 0x100000, 4096, 60


class Port:
    def __init__(self, path, sealed):
        self.messages, self.stores = 0, 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(LIMIT)
        self.socket.connect("\0" + path[1:] if path.startswith("@") else path)
        wanted = {"capabilities": {"max_msg_fds": 8, "max_data_xfer_size": 1 << 20}}  # step 1
        self.call(VERSION, struct.pack("=HH", 0, 0) + json.dumps(wanted).encode() + b"\0")
        self.write(4, 6, "H", CONFIG)  # step 2: MEM and bus master
        region, files = self.call(REGION_INFO, struct.pack("=IIIIQQ", 32, 0, DOORBELLS, 0, 0, 0))  # step 3
        self.doorbells = memoryview(mmap.mmap(files[0], struct.unpack_from("=Q", region, 16)[0])).cast("Q")
        self.kick = self.call(REGION_IO_FDS, struct.pack("=IIII", 4096, 0, DOORBELLS, 0))[1][0]
        memory = os.memfd_create("flags", os.MFD_ALLOW_SEALING)  # step 4: mapped here, then there, then sealed
        os.truncate(memory, PAGE)
        self.flag = memoryview(mmap.mmap(memory, PAGE)).cast("Q")
        self.call(DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, IOVA, PAGE), [memory])
        if sealed:
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | 0x10)  # F_SEAL_FUTURE_WRITE

    def call(self, command, payload, files=()):
        self.messages = (self.messages + 1) & 0xFFFF
        header = struct.pack("=HHIII", self.messages, command, 16 + len(payload), 0, 0)
        socket.send_fds(self.socket, [header + payload], files)
        while True:
            number, answered, flags, error, payload, files = self.receive()
            if flags & 0xF == 1 and (number, answered) == (self.messages, command):
                if error:
                    raise OSError(error, f"command {command}: {os.strerror(error)}")
                return payload, files

    def take(self, size):
        data, files = b"", []
        while len(data) < size:
            part, more, _, _ = socket.recv_fds(self.socket, size - len(data), 8)
            if not part:
                raise ConnectionError("the device has closed the connection")
            data, files = data + part, files + more
        return data, files

    def receive(self):
        """The next message. A DMA_WRITE is carried out and answered here, whatever the client waits for."""
        header, files = self.take(16)
        number, command, size, flags, error = struct.unpack("=HHIII", header)
        payload = self.take(size - 16)[0]
        if flags & 0xF == 0 and command == DMA_WRITE:
            address, _, word = struct.unpack("=QQQ", payload)
            self.flag[(address - IOVA) // 8] = word
            self.stores += 1
            self.socket.sendall(struct.pack("=HHIII", number, command, 32, 1, 0) + payload[:16])
        return number, command, flags, error, payload, files

    def write(self, offset, value, form="Q", region=CONTROL):
        data = struct.pack("<" + form, value)
        self.call(WRITE, struct.pack("=QII", offset, region, len(data)) + data)

    def read(self, offset):
        return struct.unpack_from("<Q", self.call(READ, struct.pack("=QII", offset, CONTROL, 8))[0], 16)[0]

    def command(self, opcode, group=0, member=0, key=0):
        self.write(CMD, opcode | group << 8 | member << 16 | key << 32)
        deadline = time.monotonic() + LIMIT
        while (status := self.read(CMD_STATUS)) & 1 and time.monotonic() < deadline:  # BUSY: rule 4
            time.sleep(0.001)
        if status:
            raise RuntimeError(f"command {opcode} fails with error {status >> 8}")
        return self.read(CMD_RESULT)

    def join(self, group, member, key):  # steps 6 and 7
        self.group, self.member, self.base = group, member, 0x10000 + group * 0x4000
        self.command(JOIN, group, member, key)
        self.write(self.base + RELEASE_ADDR + 8 * member, IOVA)
        self.event = os.eventfd(0, os.EFD_NONBLOCK)
        self.call(SET_IRQS, struct.pack("=IIIII", 20, 0x24, MSIX, group, 1), [self.event])
        self.waker = select.poll()
        self.waker.register(self.event, select.POLLIN)
        self.waker.register(self.socket, select.POLLIN)

    def arrive(self, sequence):
        """Python has no fence between doorbell and WAKEUP, so this kicks always (rule 14)."""
        word = sequence & 0xFFFFFFFF | self.member << 32 | 1 << 62 | 1 << 63  # VALID, NOTIFY
        self.doorbells[self.group * 8] = word
        os.eventfd_write(self.kick, 1)

    def wait(self, sequence):  # rule 18
        deadline, pause = time.monotonic() + LIMIT, 1
        while (flag := self.flag[0]) & (1 << 56) - 1 != sequence:
            if flag >> 63:
                raise RuntimeError(f"the group is in ERROR, code {flag >> 56 & 0x7F}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"barrier {sequence} is not released")
            ready = [file for file, _ in self.waker.poll(pause)]
            if self.socket.fileno() in ready:
                self.receive()
            if self.event in ready:
                os.eventfd_read(self.event)
            if not ready:
                self.arrive(sequence)
                pause = min(2 * pause, 100)


def main(path, members=2, rounds=100, memory="sealed"):
    ports = [Port(path, memory == "sealed") for _ in range(int(members))]
    owner, count = ports[0], len(ports)
    result = owner.command(ALLOC)  # step 5
    group, key = result & 0xFF, result >> 32
    base = 0x10000 + group * 0x4000
    owner.write(base + MEMBER_COUNT, count, "I")
    for word in range(0, count, 64):
        owner.write(base + MEMBER_MASK + word // 8, (1 << min(count - word, 64)) - 1)
    for member, port in enumerate(ports):
        port.join(group, member, key)
    owner.write(base + GROUP_CONTROL, ENABLE | ARM | IRQ_EN)
    for sequence in range(1, int(rounds) + 1):
        for port in ports:  # step 8
            port.arrive(sequence)
        for port in ports:  # step 9
            port.wait(sequence)
    owner.write(base + GROUP_CONTROL, 0)  # step 10: the end of a group that is enabled is an error for its members
    for port in ports:
        port.command(LEAVE, group)
    owner.command(FREE, group)
    members = "1 member" if count == 1 else f"{count} members"
    print(f"{rounds} barriers of {members}, {sum(port.stores for port in ports)} flags by DMA_WRITE")
    print("gba_client: correct")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
# An echo server and its clients, for tests.
#   echo.py serve ADDRESS           answers over UDP and TCP
#   echo.py ask ADDRESS             sends a datagram every 5 ms without end and prints which ones are answered
#   echo.py talk HOST FAMILY BYTES  sends that many bytes over TCP, waits until they come back, and prints how long that
#                                   took, including the connection
import socket
import sys
import threading
import time

PORT = 7


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def bound(address, kind):
    server = socket.socket(family_of(address), kind)
    server.bind((address, PORT))
    return server


def answer_datagrams(server):
    while True:
        data, sender = server.recvfrom(65536)
        server.sendto(data, sender)


def answer_streams(server):
    server.listen()
    while True:
        peer, _ = server.accept()
        while data := peer.recv(65536):
            peer.sendall(data)


def serve(address):
    threading.Thread(target=answer_datagrams, args=(bound(address, socket.SOCK_DGRAM),)).start()
    stream = bound(address, socket.SOCK_STREAM)
    print("serving", flush=True)
    answer_streams(stream)


def ask(address):
    client = socket.socket(family_of(address), socket.SOCK_DGRAM)
    client.settimeout(0.02)
    number = 0
    while True:
        number += 1
        try:
            client.sendto(str(number).encode(), (address, PORT))
            while (answer := client.recv(100)) != str(number).encode():
                client.settimeout(min(2 * client.gettimeout(), 1))  # this answer to an earlier datagram is late
            print("answer", answer.decode(), flush=True)
        except OSError:
            pass
        time.sleep(0.005)


def talk(host, family, size):
    family = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}[family]
    address = socket.getaddrinfo(host, PORT, family, socket.SOCK_STREAM)[0][4]
    start = time.monotonic()
    peer = socket.create_connection(address[:2])
    data = bytes(i % 251 for i in range(int(size)))
    threading.Thread(target=peer.sendall, args=(data,)).start()
    came = bytearray()
    while len(came) < len(data):
        came += peer.recv(65536) or sys.exit("closed")
    print("whole" if came == data else "changed", address[0])
    print("seconds", time.monotonic() - start)


{"serve": serve, "ask": ask, "talk": talk}[sys.argv[1]](*sys.argv[2:])

"""Messages of the pool: a length of four bytes, JSON of that length, and descriptors beside the first byte.

In: a socket. Out: objects and descriptors. Fails: EOFError if the other side is gone, ValueError if it sends something else.
"""

import array
import base64
import json
import os
import socket

MOST = 64 << 20  # bytes of a message
DESCRIPTORS = 253  # the kernel's limit for one message


def send(link, message, descriptors=()):
    data = json.dumps(message).encode()
    data = len(data).to_bytes(4, "big") + data
    beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    sent = link.sendmsg([data], beside)
    # An empty send would fail if the other side has read all and is gone.
    if sent < len(data):
        link.sendall(data[sent:])


def receive(link):
    data, descriptors = b"", []
    length = 4
    while len(data) < length:
        part, beside, _, _ = link.recvmsg(min(length - len(data), 1 << 20), socket.CMSG_SPACE(4 * DESCRIPTORS), socket.MSG_CMSG_CLOEXEC)
        for level, kind, payload in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                found = array.array("i")
                found.frombytes(payload[: len(payload) - len(payload) % found.itemsize])
                descriptors += found
        if not part:
            raise EOFError("the other side is gone")
        data += part
        if len(data) == 4 and length == 4:
            length = 4 + int.from_bytes(data, "big")
            if length > MOST:
                raise ValueError(f"message of {length} bytes")
    return json.loads(data[4:]), descriptors


def packed(texts):
    """Arguments and variables are bytes, which JSON does not have."""
    return [base64.b64encode(os.fsencode(t)).decode() for t in texts]


def unpacked(texts):
    return [os.fsdecode(base64.b64decode(t)) for t in texts]

"""Thousands of open streams through a second node: a descriptor each, and nothing else that grows with them."""

import contextlib
import os
import pathlib
import resource
import selectors
import socket
import time
import unittest

from harness import PATIENCE
from mesh import Mesh, until

STREAMS = int(os.environ.get("GODWIT_TEST_STREAMS", "5000"))
SESSIONS = 100  # one takes 64 streams at most
# Of each process: streams, and what a node has open besides.
DESCRIPTORS = STREAMS + 512


class Use:
    """What a node's process holds."""

    def __init__(self, node):
        folder = pathlib.Path(f"/proc/{node.process.pid}")
        self.descriptors = len(os.listdir(folder / "fd"))
        self.threads = len(os.listdir(folder / "task"))
        status = (folder / "status").read_text()
        self.kilobytes = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


class Watcher:
    """An open stream of a session's events, over a socket of its own."""

    def __init__(self, node, session):
        self.socket = socket.create_connection((node.host, node.port), timeout=PATIENCE)
        self.socket.sendall(f"GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n".encode())
        self.bytes = b""

    def read(self):
        data = self.socket.recv(65536)
        self.bytes += data
        return bool(data)

    @property
    def open(self):
        if self.bytes and not self.bytes.startswith(b"HTTP/1.1 200 "):
            raise AssertionError(f"a stream was refused: {self.bytes[:300]}")
        return bool(self.bytes)


    def events(self):
        """What came, without the parts that HTTP cut it into and without comments."""
        out, rest = b"", self.bytes.split(b"\r\n\r\n", 1)[1]
        while rest:
            size, rest = rest.split(b"\r\n", 1)
            out += rest[:int(size, 16)]
            rest = rest[int(size, 16) + 2:]
        return [block for block in out.split(b"\n\n") if not block.startswith(b":")]


def read_until(watchers, done):
    """Reads what comes to them until each is done."""
    waiting = [each for each in watchers if not done(each)]
    deadline = time.monotonic() + PATIENCE
    with contextlib.closing(selectors.DefaultSelector()) as selector:
        for each in waiting:
            selector.register(each.socket, selectors.EVENT_READ, each)
        while selector.get_map():
            for key, _ in selector.select(timeout=max(0.0, deadline - time.monotonic())):
                if not key.data.read():
                    raise AssertionError(f"a stream was closed: {key.data.bytes[:300]}")
                if done(key.data):
                    selector.unregister(key.fileobj)
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(selector.get_map())} of {len(watchers)} streams are late")


class ManyStreams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
            raise unittest.SkipTest(f"a process may open {hard} descriptors here, and this needs {DESCRIPTORS}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, DESCRIPTORS), hard))
        cls.addClassCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        cls.mesh = Mesh(core="gateway,session,router,tokenizer,prefill,decode,cache", front="gateway")
        cls.addClassCleanup(cls.mesh.close)
        cls.core, cls.front = cls.mesh.start("core", "front", flags=("--max-connections", str(STREAMS + 64)))

    def test_streams_cost_a_descriptor_each_and_no_threads_and_nothing_behind(self):
        core, front = self.core, self.front
        sessions = [front.session(sampling={"max_tokens": 6, "temperature": 0.8, "seed": 3}) for _ in range(SESSIONS)]
        before = Use(front), Use(core)
        watchers = []
        for index in range(STREAMS):
            watchers.append(Watcher(front, sessions[index % SESSIONS]))
            if len(watchers) % 100 == 0:  # not faster than they are taken
                read_until(watchers[-100:], lambda each: each.open)
        read_until(watchers, lambda each: each.open)
        during = Use(front), Use(core)
        print(f"{STREAMS} streams: {during[0].descriptors - before[0].descriptors} descriptors, "
              f"{during[0].threads - before[0].threads} threads, {during[0].kilobytes - before[0].kilobytes} kB more in front, "
              f"{during[1].descriptors - before[1].descriptors}, {during[1].threads - before[1].threads} and "
              f"{during[1].kilobytes - before[1].kilobytes} kB behind", flush=True)
        self.assertLessEqual(during[0].descriptors, before[0].descriptors + STREAMS + 16)
        self.assertEqual(during[0].threads, before[0].threads)
        # However many clients there are, two nodes have the same few connections.
        self.assertLessEqual(during[1].descriptors, before[1].descriptors + 16)
        self.assertEqual(during[1].threads, before[1].threads)
        # Less than a stream's heaviest part would be: a buffer of 64 kB.
        self.assertLess(during[0].kilobytes - before[0].kilobytes, STREAMS * 32 + 65536)
        self.assertEqual(front.call("GET", "/healthz").status, 200)

        # And each of them is one: it gets the turn of its session.
        for session in sessions[:5]:
            self.assertEqual(front.call("POST", f"/v1/sessions/{session}/messages", {"content": "Hello."}).status, 202)
        chosen = [each for index, each in enumerate(watchers) if index % SESSIONS < 5]
        read_until(chosen, lambda each: b"event: turn.completed" in each.bytes)
        for session in range(5):
            told = {tuple(each.events()) for index, each in enumerate(watchers) if index % SESSIONS == session}
            self.assertEqual(len(told), 1)

        for each in watchers:
            each.socket.close()
        until(lambda: Use(front).descriptors <= before[0].descriptors + 16, "the descriptors are free again")
        self.assertLessEqual(Use(core).descriptors, before[1].descriptors + 16)


if __name__ == "__main__":
    unittest.main()

"""Every role on two nodes of its own, and one of the two lost under load, role after role: each turn ends with its words."""

import contextlib
import http.client
import os
import signal
import threading
import time
import unittest

from harness import ENDS, PATIENCE
from mesh import Mesh, links, until
from postgres import Server
from test_crash import joined
from test_mesh import QUESTION, SAMPLING, Alone

ROLES = {"gate": "gateway", "ses": "session", "tok": "tokenizer", "route": "router", "pre": "prefill", "dec": "decode,cache"}
CLIENTS = 3
# How long a client waits for one answer; that of a paused node never comes.
CALL_S = 5
# A turn with all that its client has to try again; more counts as one that hangs.
TURN_S = 2 * PATIENCE
# What may be said of a mesh that has lost a node a moment ago. Everything else is a fault.
STATED = (429, 503, 529)


class Refused(Exception):
    """An answer that says that the mesh cannot do it now."""


class Client(threading.Thread):
    """An agent's backend that knows two gateways: it asks the other one when the first does not answer."""

    def __init__(self, number, gates, golden):
        super().__init__(daemon=True)
        self.number = number
        self.gates = gates
        self.golden = golden
        self.at = number
        self.turns = 0
        self.again = 0
        self.faults = []
        self.ending = threading.Event()

    @property
    def gate(self):
        return self.gates[self.at % len(self.gates)]

    def persistently(self, what):
        """Tries until it works, at one gateway after the other."""
        deadline = time.monotonic() + TURN_S
        while True:
            try:
                return what()
            except (OSError, http.client.HTTPException, Refused) as why:
                if time.monotonic() > deadline:
                    raise AssertionError(f"client {self.number}: no answer for {TURN_S:.0f} s, at last: {why!r}") from why
                self.again += 1
                self.at += 1
                time.sleep(0.1)

    def ask(self, method, path, body, good, headers=None):
        answer = self.gate.call(method, path, body, headers, timeout=CALL_S)
        if answer.status == good:
            return answer.json
        if answer.status in STATED:
            raise Refused(answer.body)
        raise AssertionError(f"{method} {path}: {answer.status} {answer.body!r}")

    def follow(self, session, seen):
        """Events of the turn behind those that were seen, until it has ended."""
        after = f"?after={seen[-1].id}" if seen else ""
        stream = self.gate.stream("GET", f"/v1/sessions/{session}/events{after}", timeout=CALL_S)
        with contextlib.closing(stream):
            if stream.status in STATED:
                raise Refused(stream.response.read())
            assert stream.status == 200, stream.response.read()
            for event in stream.events:
                seen.append(event)
                if event.type in ENDS:
                    return
        raise Refused("the stream ended before the turn did")

    def turn(self, number):
        session = self.persistently(lambda: self.ask("POST", "/v1/sessions", {"sampling": SAMPLING}, 201))["id"]
        key = {"Idempotency-Key": f"{self.number}-{number}"}
        self.persistently(lambda: self.ask("POST", f"/v1/sessions/{session}/messages", {"content": QUESTION}, 202, key))
        seen = []
        self.persistently(lambda: self.follow(session, seen))
        assert len({event.id for event in seen}) == len(seen), "an event came twice"
        assert joined(seen) == self.golden, f"other words, or none: {joined(seen)}"

    def run(self):
        while not self.ending.is_set() and not self.faults:
            try:
                self.turn(self.turns)
                self.turns += 1
            except Exception as why:  # noqa: BLE001 - whatever it is, the test has to tell it
                self.faults.append(f"client {self.number}, turn {self.turns}: {why!r}")


class EachRole(unittest.TestCase):
    pause_s = float(os.environ.get("GODWIT_TEST_PAUSE", "0"))

    @classmethod
    def setUpClass(cls):
        cls.golden = Alone.words()["turn"]
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.mesh = Mesh(**{f"{name}{number}": roles for name, roles in ROLES.items() for number in (1, 2)})
        cls.addClassCleanup(cls.mesh.close)
        config = f'journal = "postgres"\njournal_url = "{cls.server.url}"\njournal_allow_unsafe = 1\n'
        for name in cls.mesh.roles:
            node = cls.mesh.make(name, "--threads", "1")
            node.config = config
            node.start()
        for node in cls.mesh.nodes.values():
            cls.mesh.wait_ready(node)
        gates = [cls.mesh.nodes["gate1"], cls.mesh.nodes["gate2"]]
        cls.clients = [Client(number, gates, cls.golden) for number in range(CLIENTS)]
        for client in cls.clients:
            client.start()

    @classmethod
    def tearDownClass(cls):
        for client in cls.clients:
            client.ending.set()

    def progress(self, what):
        """Until every client has begun and ended a turn from now on."""
        before = [client.turns for client in self.clients]

        def done():
            faults = [fault for client in self.clients for fault in client.faults]
            self.assertEqual(faults, [], what)
            return all(client.turns >= old + 2 for client, old in zip(self.clients, before))
        until(done, f"turns end {what}", 2 * TURN_S)

    def all_up(self, name):
        """Until everybody sees the node, and it sees everybody."""
        def seen():
            return all(all(link in ("up", "self") for link in links(node).values()) and node.call("GET", "/readyz").status == 200
                       for node in self.mesh.nodes.values())
        until(seen, f"{name} is back")

    def test_one_node_of_each_role_after_the_other_is_killed(self):
        self.progress("in a whole mesh")
        for name in ROLES:
            lost = self.mesh.nodes[f"{name}1"]
            lost.stop(kill=True)
            self.progress(f"without {name}1")
            lost.start()
            self.all_up(f"{name}1")
        self.progress("when all are back")

    @unittest.skipUnless(pause_s, "takes minutes: GODWIT_TEST_PAUSE says for how many seconds nodes are stopped")
    def test_one_node_of_each_role_after_the_other_is_paused(self):
        for name in ROLES:
            lost = self.mesh.nodes[f"{name}2"]
            lost.signal(signal.SIGSTOP)
            stopped = time.monotonic()
            try:
                self.progress(f"while {name}2 is paused")
                time.sleep(max(0.0, self.pause_s - (time.monotonic() - stopped)))
            finally:
                lost.signal(signal.SIGCONT)
            self.all_up(f"{name}2")
        self.progress("when all are back")


if __name__ == "__main__":
    unittest.main()

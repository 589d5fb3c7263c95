"""A bad network between nodes: losses, delays, directions that are cut, connections of which only one end knows, packets that come late.

Runs in network namespaces that it makes itself, and is skipped where those are not permitted."""

import os
import random
import threading
import time
import unittest

import wire
from mesh import WORKER, Mesh, links, until
from test_mesh import LONG, QUESTION, SAMPLING, Alone, answer_of, told

ROUNDS = int(os.environ.get("GODWIT_TEST_NETWORK", "1"))


class WiredMesh(Mesh):
    """Nodes of a mesh, each on a host of its own."""

    def __init__(self, cable, **roles):
        self.cable = cable
        super().__init__(**roles)

    def host_of(self, name):
        return self.cable.hosts[name].address

    def make(self, name, *flags, roles=None, nodes=None):
        node = super().make(name, *flags, roles=roles, nodes=nodes)
        node.host = self.host_of(name)
        node.prefix = self.cable.hosts[name].prefix
        return node


class Network(unittest.TestCase):
    """A node with the sessions, two workers, and what can happen between them."""

    @classmethod
    def setUpClass(cls):
        cls.alone = Alone.words()  # on the loopback that is left now
        wire.leave_network()
        seed = int(os.environ.get("GODWIT_TEST_NETWORK_SEED", random.randrange(1 << 31)))
        print(f"GODWIT_TEST_NETWORK_SEED={seed}", flush=True)
        cls.cable = wire.Wire("10.77.0", ("core", "one", "two"), seed)
        cls.addClassCleanup(cls.cable.close)
        cls.mesh = WiredMesh(cls.cable, core="gateway,session,router,tokenizer", one=WORKER, two=WORKER)
        cls.addClassCleanup(cls.mesh.close)
        cls.core, cls.one, cls.two = cls.mesh.start("core", "one", "two")
        cls.sees("up", "up")

    def tearDown(self):
        self.cable.heal()
        self.sees("up", "up")

    @classmethod
    def workers(cls):
        return next(each["gauges"]["workers"] for each in cls.core.call("GET", "/v1/actors?node=core").json["data"]
                    if each["name"] == "router")

    @classmethod
    def sees(cls, one, two):
        def seen():
            now = links(cls.core)
            return (now["one"], now["two"]) == (one, two) and cls.workers() == (one == "up") + (two == "up")
        until(seen, f"core sees one {one} and two {two}", 30)

    def start_turn(self, sampling):
        session = self.core.session(sampling=sampling)
        answer = self.core.call("POST", f"/v1/sessions/{session}/messages", {"content": QUESTION})
        self.assertEqual(answer.status, 202, answer.body)
        return session

    def everything_is_said(self, meanwhile=None, turns=3, chats=2):
        """Turns and completions give what one node alone gives, whatever happens meanwhile."""
        said = []
        asking = [threading.Thread(target=lambda: said.append(answer_of(self.core))) for _ in range(chats)]
        sessions = [self.start_turn(LONG if index == 0 else SAMPLING) for index in range(turns)]
        for each in asking:
            each.start()
        if meanwhile:
            meanwhile()
        for index, session in enumerate(sessions):
            self.assertEqual(told(self.core, session), self.alone["long" if index == 0 else "turn"])
        for each in asking:
            each.join()
        self.assertEqual(said, [self.alone["chat"]] * chats)

    def test_a_direction_that_is_cut_is_noticed_on_both_sides(self):
        for source, target in (("core", "one"), ("one", "core")):
            def cut(source=source, target=target):
                time.sleep(0.5)
                self.cable.between(source, target, wire.Rule(cut=True))
                self.sees("away", "up")
            self.everything_is_said(cut)
            # The other one knows it, too, and so does not go on for nobody.
            self.cable.heal()
            until(lambda: self.one.metric("godwit_open_streams") == 0, "the worker ends what nobody takes", 10)
            self.sees("up", "up")

    def test_packets_that_come_after_the_next_conversation_has_begun_change_nothing(self):
        def flap():
            for _ in range(2):
                time.sleep(0.5)
                self.cable.both("core", "one", wire.Rule(hold=True))
                self.sees("away", "up")
                self.cable.both("core", "one", wire.Rule(delay=0.01, jitter=0.05))
                self.sees("up", "up")
        self.everything_is_said(flap, turns=4)
        self.assertGreater(self.cable.counts["held"], 0)

    def test_losses_and_delays_cost_time_and_nothing_else(self):
        rule = wire.Rule(loss=0.02, delay=0.2)
        for worker in ("one", "two"):
            self.cable.both("core", worker, rule)
        lost = self.cable.counts["lost"]
        peers = self.core.metric("godwit_peer_up")
        self.everything_is_said(turns=2, chats=1)
        self.assertGreater(self.cable.counts["lost"], lost)
        # Nobody was taken for dead.
        self.assertEqual((peers, self.core.metric("godwit_peer_up")), (2, 2))

    def test_a_node_that_starts_again_behind_a_cut_is_found_again(self):
        def restart():
            time.sleep(0.5)
            self.cable.both("core", "one", wire.Rule(cut=True))
            # Nobody says goodbye, and no packet of the old connections ever gets an answer.
            self.one.stop(kill=True)
            self.sees("away", "up")
            self.one.start()
        self.everything_is_said(restart)
        # What core still holds of the old connections leads nowhere.
        self.cable.heal()
        self.sees("up", "up")
        self.everything_is_said(turns=4)


class LongNetwork(Network):
    """All of it over and over, both workers in turn."""

    def test_one_trouble_after_the_other(self):
        for index in range(ROUNDS):
            worker = ("one", "two")[index % 2]
            node = self.mesh.nodes[worker]
            others = {"one": ("away", "up"), "two": ("up", "away")}[worker]
            kind = self.cable.random.choice(("loss", "one way", "other way", "both", "hold", "restart"))

            def trouble():
                time.sleep(self.cable.random.random())
                if kind == "loss":
                    self.cable.both("core", worker, wire.Rule(loss=0.05, delay=0.1, jitter=0.1))
                    time.sleep(3)
                    return
                if kind == "one way":
                    self.cable.between("core", worker, wire.Rule(cut=True))
                elif kind == "other way":
                    self.cable.between(worker, "core", wire.Rule(cut=True))
                else:
                    self.cable.both("core", worker, wire.Rule(cut=kind != "hold", hold=kind == "hold"))
                if kind == "restart":
                    node.stop(kill=True)
                self.sees(*others)
                if kind == "restart":
                    node.start()
                self.cable.heal()

            with self.subTest(round=index, kind=kind, worker=worker):
                self.everything_is_said(trouble)
                self.cable.heal()
                self.sees("up", "up")


if __name__ == "__main__":
    unittest.main()

"""Nodes that find each other by a table in PostgreSQL, which comes and goes; sessions do not notice."""

import signal
import threading
import time
import unittest

from harness import Node
from mesh import WORKER, Mesh, links, until
from postgres import Server
from test_mesh import LONG, QUESTION, SAMPLING, Alone, answer_of, joined, told

FRONT = "gateway,session,router,tokenizer"


class TableMesh(Mesh):
    """Nodes without a list: each says in the table where it is."""

    def __init__(self, server, **roles):
        self.server = server
        super().__init__(**roles)

    def make(self, name, *flags, as_name=None):
        node = Node("--node", as_name or name, "--roles", self.roles[name], "--mesh-registry", "postgres",
                    "--mesh-registry-url", self.server.url, "--mesh-listen", f"{self.hosts[name]}:7401",
                    "--mesh-key", str(self.folder / f"{as_name or name}.secret"), *flags, ready=False)
        self.nodes[name] = node
        return node


class Registry(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.alone = Alone.words()

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        self.mesh = TableMesh(self.server, core=FRONT, one=WORKER, two=WORKER)
        self.addCleanup(self.mesh.close)

    def told_by(self, node, words):
        """How often a node's log has told something."""
        return sum(words in line for line in node.log)

    def incarnation(self, name):
        return int(self.server.ask(f"SELECT incarnation FROM godwit.nodes WHERE name = '{name}'"))

    def test_nodes_of_a_table_work_together_and_leave_it_when_they_end(self):
        core, one = self.mesh.start("core", "one")
        self.assertEqual(links(core), {"core": "self", "one": "up"})
        self.assertEqual(self.server.ask("SELECT name || ' ' || array_to_string(roles, ',') FROM godwit.nodes ORDER BY name"),
                         f"core {FRONT.replace('router,tokenizer', 'tokenizer,router')}\none {WORKER}")
        self.assertEqual(joined(core.say(core.session(sampling=SAMPLING), QUESTION)), self.alone["turn"])
        # One comes later, another leaves.
        self.mesh.make("two").start()
        until(lambda: links(core).get("two") == "up", "the new node is known")
        one.stop()
        until(lambda: "one" not in links(core), "the node that left is off the list")
        self.assertEqual(answer_of(core), self.alone["chat"])

    def test_a_second_node_of_a_name_does_not_start(self):
        self.mesh.start("core", "one")
        self.mesh.hosts["two"] = "127.9.9.9"
        second = self.mesh.make("two", as_name="one")
        with self.assertRaises(AssertionError) as failure:
            second.start()
        self.assertIn("another process of this mesh is called one and lives", str(failure.exception))
        self.assertEqual(links(self.mesh.nodes["core"])["one"], "up")

    def test_a_killed_node_is_off_the_list_and_starts_again_under_its_name(self):
        core, one = self.mesh.start("core", "one")
        before = self.incarnation("one")
        one.stop(kill=True)
        until(lambda: links(core).get("one") != "up", "its loss is noticed", 5)
        until(lambda: "one" not in links(core), "it is off the list", 20)
        one.start()
        until(lambda: links(core).get("one") == "up", "it is back")
        self.assertGreater(self.incarnation("one"), before)
        # At once after its end, the name is free within the limit of a beat's age.
        one.stop(kill=True)
        began = time.monotonic()
        one.start()
        self.assertLess(time.monotonic() - began, 20)
        until(lambda: links(core).get("one") == "up", "it is back once more")
        self.assertEqual(answer_of(core), self.alone["chat"])

    def test_a_node_paused_for_15_seconds_comes_back_as_another_incarnation(self):
        core, one = self.mesh.start("core", "one")
        before = self.incarnation("one")

        def shown():
            return {each["name"]: each.get("incarnation") for each in core.call("GET", "/v1/nodes").json["data"]}

        until(lambda: shown()["one"] == str(before), "the list has the table's number")
        one.signal(signal.SIGSTOP)
        paused = time.monotonic()
        try:
            until(lambda: links(core).get("one") != "up", "the pause is noticed", 5)
            time.sleep(15 - (time.monotonic() - paused))
            until(lambda: "one" not in links(core), "it is off the list", 5)
        finally:
            one.signal(signal.SIGCONT)
        until(lambda: links(core).get("one") == "up", "it is used again")
        self.assertGreater(self.incarnation("one"), before)
        until(lambda: shown()["one"] == str(self.incarnation("one")), "the list has the table's new number")
        self.mesh.wait_ready(core)
        self.assertEqual(answer_of(core), self.alone["chat"])

    def test_a_registry_that_comes_and_goes_takes_nobody_away(self):
        core, one = self.mesh.start("core", "one")
        session = core.session(sampling=LONG)
        posted = core.call("POST", f"/v1/sessions/{session}/messages", {"content": QUESTION})
        self.assertEqual(posted.status, 202, posted.body)
        seen = []
        done = threading.Event()

        def watch():
            while not done.is_set():
                seen.append(links(core).get("one"))
                time.sleep(0.1)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        for away in (1, 7, 0.2):
            self.server.kill()
            time.sleep(away)
            if away > 5:
                self.assertEqual(core.metric("godwit_registry_up"), 0)
                reasons = {each["name"]: each.get("reason", "") for each in core.call("GET", "/v1/nodes").json["data"]}
                self.assertIn("database is away", reasons["core"])
                self.assertEqual(reasons["one"], "")
            self.server.start()
            time.sleep(2)
        self.assertEqual(told(core, session), self.alone["long"])
        done.set()
        watcher.join()
        self.assertEqual(set(seen), {"up"})
        for node in (core, one):
            lost, back = self.told_by(node, "is away, the nodes"), self.told_by(node, "database is back")
            self.assertTrue(1 <= back <= lost <= 3, (lost, back))
        until(lambda: core.metric("godwit_registry_up") == 1, "the registry is there")
        # New ones come in as before.
        self.mesh.make("two").start()
        until(lambda: links(core).get("two") == "up", "the new node is known")

    def test_without_its_database_a_node_does_not_start_and_says_why(self):
        self.server.kill()
        began = time.monotonic()
        with self.assertRaises(AssertionError) as failure:
            self.mesh.make("one").start()
        self.assertIn("the registry cannot be used", str(failure.exception))
        self.assertLess(time.monotonic() - began, 45)
        self.server.start()


class SessionNodes(unittest.TestCase):
    """Two nodes that each keep sessions in a journal of their own."""

    def test_the_later_one_is_refused_until_the_other_has_gone(self):
        mesh = Mesh(core=FRONT, side=FRONT, one=WORKER)
        self.addCleanup(mesh.close)
        core, _ = mesh.start("core", "one")
        time.sleep(1.1)  # starts are told apart by seconds
        side = mesh.make("side").start()
        refused = until(lambda: (said := side.call("GET", "/readyz")).status == 503 and b"role session too" in said.body and said,
                        "the later one is refused")
        self.assertIn("the node core has the role session too", refused.body.decode())
        self.assertTrue(any("must not have sessions" in line for line in side.log))
        # The first goes on as before, and says what it has against the other.
        self.assertEqual(core.call("GET", "/readyz").status, 200)
        self.assertEqual(joined(core.say(core.session(sampling=SAMPLING), QUESTION)), Alone.words()["turn"])
        listed = {each["name"]: each for each in core.call("GET", "/v1/nodes").json["data"]}
        self.assertIn("journal", listed["side"].get("reason", ""))
        core.stop()
        until(lambda: side.call("GET", "/readyz").status == 200, "it may have sessions now")
        self.assertEqual(joined(side.say(side.session(sampling=SAMPLING), QUESTION)), Alone.words()["turn"])


if __name__ == "__main__":
    unittest.main()

"""tools/dev-cluster with PostgreSQL: what docs/journal.md promises when servers and nodes are lost while a session streams."""

import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from harness import GODWITD, MODEL, PATIENCE, ROOT, Node, begin_turn, rest_of_turn
from mesh import WORKER, links, until
from test_mesh import LONG, QUESTION, SAMPLING, Alone, joined

FRONT = "gateway,session,router,tokenizer"


def free_base(count):
    """The first of so many ports of which none is used now."""
    while True:
        base = random.randint(20000, 30000)
        try:
            for port in range(base, base + count):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
            return base
        except OSError:
            continue


class Remote(Node):
    """A node that somebody else runs."""

    def __init__(self, port):
        self.port = port


class DevCluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.alone = Alone.words()
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="godwit-cluster-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.addClassCleanup(cls.tool, "stop")
        base = free_base(15)
        cls.tool("start", "--postgres", "--model", str(MODEL), "--programs", str(pathlib.Path(GODWITD).parent), "--http-port",
                 str(base), "--mesh-port", str(base + 3), "--db-port", str(base + 12), "--node", f"core={FRONT}",
                 "--node", f"side={FRONT}", "--node", f"work={WORKER}")
        cls.core, cls.side, cls.work = (Remote(base + i) for i in range(3))

    @classmethod
    def tool(cls, *words, fails=False):
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "dev-cluster"), words[0], "--folder", str(cls.folder), *words[1:]],
                              capture_output=True, text=True, timeout=180)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def setUp(self):
        for node in (self.core, self.side):
            until(lambda: node.call("GET", "/readyz").status == 200, "the node is ready")

    def tearDown(self):
        # What a failed test has left dead would fail those behind it.
        for name, (process, _, _) in self.databases().items():
            if process == "not running":
                self.tool("restart", name)

    def databases(self):
        """What each is and how the primary sees it, by name."""
        lines = self.tool("status").split("\n\n")[0].splitlines()[1:]
        return {name: (process.strip(), role, sync) for name, process, role, sync in
                ((line.split()[0], " ".join(line.split()[1:-2]), *line.split()[-2:]) for line in lines)}

    def primary(self):
        return next(name for name, (_, role, _) in self.databases().items() if role == "primary")

    def wait_whole(self):
        """Until both standbys count again."""
        until(lambda: sum(sync == "quorum" for _, _, sync in self.databases().values()) == 2, "both standbys follow")

    def begin(self, node):
        session, stream, seen = begin_turn(node, QUESTION, LONG)
        self.addCleanup(stream.close)
        return session, stream, seen

    def finish(self, stream, seen):
        """The whole turn, when it is over."""
        told = seen + rest_of_turn(stream, 2 * PATIENCE)
        stream.close()
        self.assertEqual(joined(told), self.alone["long"])
        return told

    def test_a_stream_goes_on_when_the_primary_is_killed_and_a_standby_promoted(self):
        old = self.primary()
        session, stream, seen = self.begin(self.core)
        self.tool("kill", old)
        self.tool("promote")
        told = self.finish(stream, seen)
        self.assertNotEqual(self.primary(), old)
        # Everything that was told is in the new primary, wherever it is asked for.
        for node in (self.core, self.side):
            until(lambda: node.call("GET", "/readyz").status == 200, "the node is ready")
            self.assertEqual(node.events(session), told)
        self.assertEqual(links(self.core), {"core": "self", "side": "up", "work": "up"})
        # The old one comes back as a standby.
        self.tool("restart", old)
        self.wait_whole()
        self.assertEqual(self.databases()[old][1], "standby")

    def test_a_lost_standby_is_not_noticed_and_without_both_streams_wait(self):
        standbys = [name for name, (_, role, _) in self.databases().items() if role == "standby"]
        other = self.core.session(sampling=SAMPLING)
        session, stream, seen = self.begin(self.core)
        self.tool("kill", standbys[0])
        while sum(event.type == "token" for event in seen) < 12:
            seen.append(stream.next())
        self.tool("kill", standbys[1])
        # On a fast machine the turn may be over by now: this one is sure to have something to be confirmed.
        said = []
        waits = threading.Thread(target=lambda: said.append(self.core.say(other, QUESTION)), daemon=True)
        waits.start()
        until(lambda: self.core.call("GET", "/readyz").status == 503, "readiness tells that nothing is acknowledged")
        self.assertIn("does not confirm", self.core.call("GET", "/readyz").body.decode())
        self.tool("restart", standbys[0])
        told = self.finish(stream, seen)
        until(lambda: self.core.call("GET", "/readyz").status == 200, "the node is ready")
        self.assertEqual(self.core.events(session), told)
        waits.join(PATIENCE)
        self.assertEqual([joined(each) for each in said], [self.alone["turn"]])
        self.tool("restart", standbys[1])
        self.wait_whole()

    def test_a_killed_node_leaves_its_sessions_to_another_and_is_used_again(self):
        session, stream, seen = self.begin(self.core)
        self.tool("kill", "core")
        try:
            stream.close()
            # Asked at once, when the other node may not know yet that it is to have the session.
            told = self.side.events(session)
            self.assertEqual(told[:len(seen)], seen)
            self.assertEqual(joined(told), self.alone["long"])
            self.assertIn("not running", self.tool("status"))
        finally:
            self.tool("restart", "core")
        until(lambda: links(self.side).get("core") == "up", "the node is back")
        self.assertEqual(self.core.events(session), told)
        self.assertEqual(joined(self.core.say(self.core.session(sampling=SAMPLING), QUESTION)), self.alone["turn"])

    def test_a_paused_node_is_used_again(self):
        self.tool("pause", "work")
        try:
            until(lambda: links(self.core).get("work") != "up", "the pause is noticed", 10)
            self.assertIn("paused", self.tool("status"))
            time.sleep(8)
        finally:
            self.tool("resume", "work")
        until(lambda: links(self.core).get("work") == "up", "it is used again")
        until(lambda: self.core.call("GET", "/readyz").status == 200, "the node is ready")
        self.assertEqual(joined(self.core.say(self.core.session(sampling=SAMPLING), QUESTION)), self.alone["turn"])

    def test_what_cannot_be_done_is_refused_with_a_reason(self):
        self.assertIn("kill it first", self.tool("promote", fails=True))
        self.assertIn("there is no node nobody", self.tool("kill", "nobody", fails=True))
        self.assertIn("cannot be drained", self.tool("drain", "db1", fails=True))
        self.assertIn("it is running", self.tool("start", "--postgres", "--model", str(MODEL), fails=True))


if __name__ == "__main__":
    unittest.main()

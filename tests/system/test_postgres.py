"""A node whose journal is in PostgreSQL: it dies, its database dies, and the answer goes on with the next token."""

import tempfile
import time
import unittest

from harness import ENDS, PATIENCE, Node, begin_turn, ids_of, rest_of_turn, text_of
from postgres import Server

SAMPLING = {"temperature": 0.9, "seed": 11, "max_tokens": 120, "top_p": 0.95}
QUESTION = "Tell me about the sea and the birds above it."


class Postgres(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        node = Node()
        try:
            cls.golden = node.say(node.session(sampling=SAMPLING), QUESTION)
        finally:
            node.close()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def node(self, heartbeat=15, deadline=10, **more):
        config = (f'journal = "postgres"\njournal_url = "{self.server.url}"\njournal_allow_unsafe = 1\n'
                  f'heartbeat_s = {heartbeat}\njournal_deadline_s = {deadline}\n')
        return Node(config=config, **more)

    @staticmethod
    def begin(node):
        return begin_turn(node, QUESTION, SAMPLING)

    def wait_ready(self, node):
        deadline = time.monotonic() + PATIENCE
        while node.call("GET", "/readyz").status != 200:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)

    def assert_golden(self, events):
        self.assertEqual([event.type for event in events if event.type in ENDS], ["turn.completed"])
        self.assertEqual(ids_of(events), ids_of(self.golden))
        self.assertEqual(text_of(events), text_of(self.golden))

    def test_a_killed_node_goes_on_where_it_was_on_another_machine(self):
        first = self.node()
        try:
            session, stream, seen = self.begin(first)
            first.stop(kill=True)
            stream.close()
            # Another data directory and the same name: nothing of the session is on the first machine.
            with tempfile.TemporaryDirectory() as folder:
                second = self.node(data=folder)
                try:
                    events = second.events(session)
                    self.assertEqual(events[:len(seen)], seen)
                    self.assert_golden(events)
                finally:
                    second.close()
        finally:
            first.close()

    def test_a_stream_waits_while_the_database_is_away(self):
        # For shorter than a call of the journal may take, and for longer.
        for away, deadline in ((1, 10), (4, 2)):
            with self.subTest(away=away, deadline=deadline):
                node = self.node(deadline=deadline)
                try:
                    session, stream, seen = self.begin(node)
                    self.server.kill()
                    time.sleep(away)
                    self.server.start()
                    seen += rest_of_turn(stream)
                    stream.close()
                    self.assert_golden(seen)
                    self.assertEqual(node.events(session), seen)
                    self.assertGreaterEqual(node.metric("godwit_journal_recoveries_total"), 1)
                finally:
                    node.close()

    def test_a_stream_without_its_database_has_heartbeats_and_no_tokens(self):
        node = self.node(heartbeat=1)
        try:
            session, stream, seen = self.begin(node)
            self.server.kill()
            try:
                # What was acknowledged before may still come; from then on there is nothing but signs of life.
                deadline = time.monotonic() + PATIENCE
                signs = 0
                while signs < 4:
                    line = stream.response.readline()
                    self.assertLess(time.monotonic(), deadline)
                    self.assertTrue(line, "the stream has ended")
                    if line.startswith(b":"):
                        signs += 1
                    elif line.startswith((b"id:", b"event:", b"data:")):
                        signs = 0
            finally:
                self.server.start()
            stream.close()
            # Until the outcome of what was under way is known, the session is not read.
            self.wait_ready(node)
            events = node.events(session)
            self.assertEqual(events[:len(seen)], seen)
            self.assert_golden(events)
        finally:
            node.close()

    def test_readiness_tells_that_the_database_is_away(self):
        node = self.node(deadline=3)
        try:
            self.assertEqual(node.call("GET", "/readyz").status, 200)
            self.server.kill()
            try:
                # Somebody has to write for it to be noticed.
                answer = node.call("POST", "/v1/sessions", {"sampling": SAMPLING})
                self.assertGreaterEqual(answer.status, 500, answer.body)
                self.assertNotIn(b"127.0.0.1:" + str(self.server.port).encode(), answer.body)
                self.assertEqual(node.call("GET", "/readyz").status, 503)
            finally:
                self.server.start()
            self.wait_ready(node)
            self.assertTrue(node.session(sampling=SAMPLING))
        finally:
            node.close()

    def test_a_database_that_may_lose_records_is_refused_by_name(self):
        node = Node(config=f'journal = "postgres"\njournal_url = "{self.server.url}"\n', ready=False)
        try:
            with self.assertRaises(AssertionError) as failure:
                node.start()
            self.assertIn("fsync is off", str(failure.exception))
        finally:
            node.close()


if __name__ == "__main__":
    unittest.main()

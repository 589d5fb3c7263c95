"""A node whose journal is in PostgreSQL: it dies, and the answer goes on with the next token elsewhere."""

import tempfile
import unittest

from harness import ENDS, Node, ids_of, text_of
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

    def node(self, **more):
        config = f'journal = "postgres"\njournal_url = "{self.server.url}"\njournal_allow_unsafe = 1\n'
        return Node(config=config, **more)

    def begin(self, node):
        """A turn of which the first events have come."""
        session = node.session(sampling=SAMPLING)
        stream = node.stream("POST", f"/v1/sessions/{session}/messages", {"content": QUESTION, "stream": True})
        seen = []
        while sum(event.type == "token" for event in seen) < 3:
            seen.append(stream.next())
        return session, stream, seen

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

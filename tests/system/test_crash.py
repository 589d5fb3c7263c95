"""kill -9 at random moments of a turn: what was seen stays true, and the rest comes as if nothing had happened."""

import contextlib
import http.client
import json
import os
import random
import threading
import unittest

from harness import ENDS, Node, ids_of, text_of

SAMPLING = {"temperature": 0.9, "seed": 11, "max_tokens": 90, "top_p": 0.95}
QUESTION = "Tell me about the sea and the birds above it."
ROUNDS = int(os.environ.get("GODWIT_TEST_CRASHES", "12"))


def without_moves(events):
    """The events a run without a crash has too, without their ids: a recovery takes a place in the journal."""
    return [(event.type, event.data) for event in events if event.type not in ("session.recovering", "session.moved")]


def joined(events):
    """Token events joined: a crash may cut a group of tokens elsewhere."""
    tokens, texts, rest = [], [], []
    for event in events:
        if event.type == "token":
            tokens += event.json["tokens"]
            texts.append(event.json["text"])
        elif event.type not in ("session.recovering", "session.moved"):
            data = {key: value for key, value in event.json.items() if key not in ("usage", "session", "id", "at")}
            rest.append((event.type, json.dumps(data, sort_keys=True)))
    return tokens, "".join(texts), rest


class Crash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        node = Node()
        try:
            cls.golden = node.say(node.session(sampling=SAMPLING), QUESTION)
        finally:
            node.close()

    def test_a_killed_node_goes_on_where_it_was(self):
        dice = random.Random(5)
        for round_number in range(ROUNDS):
            with self.subTest(round=round_number):
                self.one_round(dice)

    def one_round(self, dice):
        node = Node()
        try:
            session = node.session(sampling=SAMPLING)
            for _ in range(dice.choice((1, 1, 2))):
                seen = []
                kill_after = dice.uniform(0, 0.9)
                timer = threading.Timer(kill_after, lambda: node.process.kill())
                timer.start()
                with contextlib.suppress(OSError, http.client.HTTPException, AssertionError, StopIteration):
                    stream = node.stream("POST", f"/v1/sessions/{session}/messages",
                                         {"content": QUESTION, "stream": True}, {"Idempotency-Key": "only"})
                    with contextlib.closing(stream):
                        for event in stream.events:
                            seen.append(event)
                timer.cancel()
                timer.join()
                node.stop(kill=True)
                node.start()
            # The client repeats what it could not know the fate of: same key, same body.
            again = node.call("POST", f"/v1/sessions/{session}/messages", {"content": QUESTION}, {"Idempotency-Key": "only"})
            self.assertEqual(again.status, 202, again.body)
            self.assertEqual(again.json["turn"], 1)
            events = node.events(session)
            self.assertEqual(events[:len(seen)], seen)
            ids = [int(event.id) for event in events]
            self.assertEqual(ids, sorted(set(ids)))
            self.assertEqual([event.type for event in events if event.type in ENDS], ["turn.completed"])
            self.assertEqual(joined(events), joined(self.golden))
            self.assertEqual(node.events(session), events)
            shown = node.call("GET", f"/v1/sessions/{session}").json
            self.assertEqual((shown["status"], shown["turns"]), ("idle", 1))
        finally:
            node.close()

    def test_a_cancel_survives_a_kill(self):
        node = Node()
        try:
            session = node.session(sampling={**SAMPLING, "max_tokens": 500})
            stream = node.stream("POST", f"/v1/sessions/{session}/messages", {"content": QUESTION, "stream": True})
            with contextlib.closing(stream):
                for _ in range(6):
                    stream.next()
                answer = node.call("POST", f"/v1/sessions/{session}/cancel", {})
                node.stop(kill=True)
            self.assertEqual(answer.status, 200)
            node.start()
            events = node.events(session)
            self.assertEqual([event.type for event in events if event.type in ENDS], ["turn.cancelled"])
            self.assertEqual(node.call("GET", f"/v1/sessions/{session}").json["status"], "idle")
        finally:
            node.close()

    def test_sigterm_leaves_an_unfinished_turn_to_the_next_start(self):
        node = Node(config="drain_deadline_s = 1\n")
        try:
            session = node.session(sampling={**SAMPLING, "max_tokens": 1500})
            stream = node.stream("POST", f"/v1/sessions/{session}/messages", {"content": QUESTION, "stream": True})
            with contextlib.closing(stream):
                seen = [stream.next() for _ in range(4)]
                self.assertEqual(node.stop(), 0)
            node.start()
            node.call("POST", f"/v1/sessions/{session}/cancel", {})
            events = node.events(session)
            self.assertEqual(events[:4], seen)
            self.assertNotIn("turn.cancelled", [event.type for event in events[:-1]])
        finally:
            node.close()

    def test_finished_sessions_read_the_same_after_a_restart(self):
        node = Node()
        try:
            session = node.session(sampling=SAMPLING)
            first = node.say(session, QUESTION)
            node.stop(kill=True)
            node.start()
            self.assertEqual(node.events(session), first)
            second = node.say(session, "And the ships?")
            node.stop()
            node.start()
            self.assertEqual(node.events(session, turns=2), first + second)
            fresh = Node()
            try:
                other = fresh.session(sampling=SAMPLING)
                self.assertEqual(ids_of(fresh.say(other, QUESTION)), ids_of(first))
                self.assertEqual(text_of(fresh.say(other, "And the ships?")), text_of(second))
            finally:
                fresh.close()
        finally:
            node.close()


if __name__ == "__main__":
    unittest.main()

"""Nodes with different roles: a caller cannot tell them from one node, and the loss of a worker loses nothing."""

import signal
import subprocess
import threading
import time
import unittest

from harness import GODWIT, MODEL, Node
from mesh import WORKER, Mesh, fresh_host, links, until
from test_crash import joined

SAMPLING = {"temperature": 0.9, "seed": 11, "max_tokens": 90, "top_p": 0.95}
LONG = {**SAMPLING, "max_tokens": 240}
QUESTION = "Tell me about the sea and the birds above it."
CHAT = {"model": MODEL.stem, "messages": [{"role": "user", "content": QUESTION}], "seed": 5, "max_tokens": 60, "temperature": 0.8}
LONG_CHAT = {**CHAT, "max_tokens": 240, "n": 2, "logprobs": True}


def answer_of(node, chat=CHAT):
    """What a completion says, without what differs from call to call."""
    answer = node.call("POST", "/v1/chat/completions", chat)
    assert answer.status == 200, answer.body
    return answer.json["choices"], answer.json["usage"]["completion_tokens"], answer.json["system_fingerprint"]


def told(node, session):
    """The events of a session's turn, once it is over."""
    return joined(node.events(session))


class Alone:
    """What one node with all roles says."""

    made = None

    @classmethod
    def words(cls):
        if cls.made is None:
            node = Node()
            try:
                cls.made = {"turn": joined(node.say(node.session(sampling=SAMPLING), QUESTION)),
                            "long": joined(node.say(node.session(sampling=LONG), QUESTION)), "chat": answer_of(node),
                            "long chat": answer_of(node, LONG_CHAT)}
            finally:
                node.close()
        return cls.made


class Roles(unittest.TestCase):
    """A gateway in front of the sessions, and a worker behind them."""

    @classmethod
    def setUpClass(cls):
        cls.alone = Alone.words()
        cls.mesh = Mesh(door="gateway", core="gateway,session,router,tokenizer", work=WORKER)
        cls.addClassCleanup(cls.mesh.close)
        cls.door, cls.core, cls.work = (cls.mesh.make(name) for name in ("door", "core", "work"))
        for node in (cls.core, cls.door):
            node.start()
        # Without its worker a router waits, and says so.
        waiting = cls.core.call("GET", "/readyz")
        assert waiting.status == 503, waiting.body
        assert "no worker" in waiting.body.decode(), waiting.body
        refused = cls.core.call("POST", "/v1/chat/completions", CHAT)
        assert refused.status == 503, refused.body
        cls.work.start()
        for node in (cls.work, cls.core, cls.door):
            cls.mesh.wait_ready(node)

    def test_a_worker_elsewhere_gives_the_same_tokens(self):
        session = self.core.session(sampling=SAMPLING)
        self.assertEqual(joined(self.core.say(session, QUESTION)), self.alone["turn"])
        self.assertEqual(answer_of(self.core), self.alone["chat"])
        self.assertEqual(self.core.metric("godwit_decoded_tokens_total"), 0)
        self.assertGreater(self.work.metric("godwit_decoded_tokens_total"), 0)

    def test_a_gateway_in_front_gives_the_same_events(self):
        session = self.door.session(sampling=SAMPLING)
        said = self.door.say(session, QUESTION)
        self.assertEqual(joined(said), self.alone["turn"])
        # The same bytes, wherever they are read, and from any place.
        self.assertEqual(self.core.events(session), said)
        self.assertEqual(self.door.events(session, after=said[4].id), said[5:])
        self.assertEqual(answer_of(self.door), self.alone["chat"])
        shown = self.door.call("GET", f"/v1/sessions/{session}").json
        self.assertEqual((shown["status"], shown["owner"]["node"]), ("idle", "core"))
        # The worker's cache has it, and lets go of it.
        self.assertGreater(shown["kv"]["device"], 0)
        suspended = self.door.call("POST", f"/v1/sessions/{session}/suspend")
        self.assertEqual(suspended.status, 200, suspended.body)
        self.assertLess(suspended.json["kv"]["device"], shown["kv"]["device"])
        self.assertGreater(suspended.json["kv"]["disk"], shown["kv"]["device"] // 2)
        self.assertEqual(self.door.call("DELETE", f"/v1/sessions/{session}").status, 200)
        self.assertEqual(self.core.call("GET", f"/v1/sessions/{session}").status, 404)

    def test_a_client_that_leaves_a_gateway_in_front_can_come_back(self):
        session = self.door.session(sampling=SAMPLING)
        stream = self.door.stream("POST", f"/v1/sessions/{session}/messages", {"content": QUESTION, "stream": True})
        seen = [stream.next() for _ in range(4)]
        stream.close()
        events = self.door.events(session)
        self.assertEqual(events[:4], seen)
        self.assertEqual(joined(events), self.alone["turn"])

    def test_every_node_shows_all_nodes_and_actors(self):
        for node, name in ((self.door, "door"), (self.core, "core"), (self.work, "work")):
            self.assertEqual(links(node), {**dict.fromkeys(("core", "door", "work"), "up"), name: "self"})
        listed = self.door.call("GET", "/v1/nodes").json["data"]
        self.assertEqual([each["roles"] for each in listed],
                         [["gateway", "session", "tokenizer", "router"], ["gateway"], ["prefill", "decode", "cache"]])
        self.assertEqual(len({each["fingerprint"] for each in listed}), 1)
        self.assertEqual([each["capacity"] > 0 for each in listed], [False, False, True])
        self.assertTrue(all(each["round_trip_s"] < 1 for each in listed if each["link"] == "up"))
        actors = self.door.call("GET", "/v1/actors").json["data"]
        self.assertLessEqual({("work", "prefill"), ("core", "directory"), ("core", "router"), ("core", "tokenizer")},
                             {(each["node"], each["name"]) for each in actors})
        only = self.door.call("GET", "/v1/actors?node=work").json["data"]
        self.assertEqual({each["node"] for each in only}, {"work"})
        self.assertEqual(self.door.call("GET", "/v1/actors?node=nobody").status, 404)
        shown = subprocess.run([GODWIT, "nodes", "--url", f"http://127.0.0.1:{self.work.port}"], capture_output=True, check=True)
        self.assertIn(b"core", shown.stdout)
        self.assertEqual(self.door.metric("godwit_peer_up"), 2)

    def test_a_worker_answers_its_operators_and_no_clients(self):
        self.assertEqual(self.work.call("GET", "/healthz").status, 200)
        refused = self.work.call("GET", "/v1/sessions")
        self.assertEqual((refused.status, refused.json["error"]["code"]), (404, "no_gateway"))
        # No journal, and no weights where nothing is computed.
        self.assertFalse((self.work.data / "journal").exists())
        self.assertFalse((self.door.data / "journal").exists())
        self.assertLess(self.door.metric("process_resident_memory_bytes"), self.work.metric("process_resident_memory_bytes"))

    def test_a_stranger_is_not_let_in(self):
        self.mesh.hosts["stranger"] = fresh_host()
        self.mesh.new_key("stranger")
        own = self.mesh.write_list("stranger.toml", ("core", "work", "stranger"))
        before = self.core.metric("godwit_link_unknown_keys_total")
        stranger = self.mesh.make("stranger", roles="gateway", nodes=own)
        stranger.start()
        until(lambda: self.core.metric("godwit_link_unknown_keys_total") > before, "the stranger tries")
        refused = stranger.call("GET", "/readyz")
        self.assertEqual(refused.status, 503)
        self.assertEqual({reason["role"] for reason in refused.json["reasons"]}, {"session", "tokenizer", "router"})
        self.assertEqual(stranger.call("GET", "/v1/sessions").status, 503)
        self.assertNotIn("stranger", links(self.core))
        self.assertEqual(self.mesh.nodes.pop("stranger").stop(), 0)
        stranger.close()


class Workers(unittest.TestCase):
    """Two workers, which come and go."""

    @classmethod
    def setUpClass(cls):
        cls.alone = Alone.words()

    def setUp(self):
        self.mesh = Mesh(core="gateway,session,router,tokenizer", one=WORKER, two=WORKER)
        self.addCleanup(self.mesh.close)

    def worker_in_use(self, *names):
        """The worker that generates now."""
        def busy():
            return next((name for name in names if self.mesh.nodes[name].metric("godwit_open_streams") > 0), None)
        return until(busy, "a worker generates")

    def computed(self, name):
        return self.mesh.nodes[name].metric("godwit_decoded_tokens_total")

    def workers(self, core):
        return next(each["gauges"]["workers"] for each in core.call("GET", "/v1/actors?node=core").json["data"]
                    if each["name"] == "router")

    def start_turn(self, core, sampling=None):
        session = core.session(sampling=sampling or LONG)
        answer = core.call("POST", f"/v1/sessions/{session}/messages", {"content": QUESTION})
        self.assertEqual(answer.status, 202, answer.body)
        return session

    def test_a_killed_worker_loses_nothing_and_is_used_again(self):
        core, one, two = self.mesh.start("core", "one", "two")
        until(lambda: self.workers(core) == 2, "both workers are known")

        # Sessions side by side use both.
        sessions = [self.start_turn(core, SAMPLING) for _ in range(6)]
        for session in sessions:
            self.assertEqual(told(core, session), self.alone["turn"])
        self.assertGreater(self.computed("one"), 0)
        self.assertGreater(self.computed("two"), 0)

        session = self.start_turn(core)
        lost = self.worker_in_use("one", "two")
        until(lambda: len(core.call("GET", f"/v1/sessions/{session}/events?follow=0").body) > 2000, "tokens are there")
        self.mesh.nodes[lost].stop(kill=True)
        self.assertEqual(told(core, session), self.alone["long"])
        self.assertEqual(self.workers(core), 1)

        again = self.mesh.nodes[lost].start()
        until(lambda: self.workers(core) == 2, "the worker is back")
        sessions = [self.start_turn(core, SAMPLING) for _ in range(4)]
        for session in sessions:
            self.assertEqual(told(core, session), self.alone["turn"])
        self.assertGreater(again.metric("godwit_decoded_tokens_total"), 0)

    def test_a_completion_goes_on_with_another_worker(self):
        core, one, two = self.mesh.start("core", "one", "two")
        until(lambda: self.workers(core) == 2, "both workers are known")
        said = []
        asking = threading.Thread(target=lambda: said.append(answer_of(core, LONG_CHAT)))
        asking.start()
        lost = self.worker_in_use("one", "two")
        before = self.computed(lost)
        until(lambda: self.computed(lost) > before + 10, "it is in the middle of it")
        self.mesh.nodes[lost].stop(kill=True)
        asking.join()
        self.assertEqual(said, [self.alone["long chat"]])
        # Nobody is left to go on with it: that is an answer, too, and it comes in time.
        asking = threading.Thread(target=lambda: said.append(core.call("POST", "/v1/chat/completions", LONG_CHAT)))
        asking.start()
        other = self.worker_in_use(*({"one", "two"} - {lost}))
        self.mesh.nodes[other].stop(kill=True)
        started = time.monotonic()
        asking.join(timeout=60)
        self.assertLess(time.monotonic() - started, 40)
        self.assertEqual((said[-1].status, said[-1].json["error"]["code"]), (503, "unavailable"), said[-1].body)
        self.assertEqual(core.metric("godwit_peer_up"), 0)

    def test_a_paused_worker_is_given_up_and_used_again(self):
        core, one = self.mesh.start("core", "one")
        session = self.start_turn(core)
        self.assertEqual(self.worker_in_use("one"), "one")
        one.signal(signal.SIGSTOP)
        paused = time.monotonic()
        try:
            until(lambda: links(core)["one"] == "away", "the pause is noticed", 5)
            self.assertLess(time.monotonic() - paused, 4)
            # One that comes late takes over what was running.
            self.mesh.make("two").start()
            self.assertEqual(told(core, session), self.alone["long"])
            time.sleep(max(0.0, 15 - (time.monotonic() - paused)))
        finally:
            one.signal(signal.SIGCONT)
        until(lambda: links(core)["one"] == "up" and self.workers(core) == 2, "the worker is back")
        before = self.computed("one")
        sessions = [self.start_turn(core, SAMPLING) for _ in range(4)]
        for each in sessions:
            self.assertEqual(told(core, each), self.alone["turn"])
        self.assertGreater(self.computed("one"), before)
        self.assertEqual(told(core, session), self.alone["long"])

    def test_a_node_that_is_drained_ends_its_turns_and_then_itself(self):
        core, one, two = self.mesh.start("core", "one", "two")
        until(lambda: self.workers(core) == 2, "both workers are known")
        session = self.start_turn(core)
        name = self.worker_in_use("one", "two")
        other = {"one": "two", "two": "one"}[name]
        process = self.mesh.nodes[name].process
        drained = subprocess.run([GODWIT, "drain", name, "--url", f"http://127.0.0.1:{core.port}"], capture_output=True)
        self.assertEqual((drained.returncode, drained.stdout.split()), (0, [name.encode(), b"draining"]), drained.stderr)
        # New work goes to the other one at once.
        said = []
        chats = [threading.Thread(target=lambda: said.append(answer_of(core))) for _ in range(2)]
        for each in chats:
            each.start()
        for each in chats:
            each.join()
        self.assertEqual(said, [self.alone["chat"]] * 2)
        self.assertEqual(told(core, session), self.alone["long"])
        self.assertEqual(process.wait(timeout=30), 0)
        self.assertGreater(self.computed(other), 0)
        until(lambda: self.workers(core) == 1, "the drained worker has left")
        self.assertEqual(core.call("POST", "/v1/nodes/nobody/drain").status, 404)
        self.assertEqual(answer_of(core), self.alone["chat"])


class Split(unittest.TestCase):
    """Prompts on one node, streams and their cache on another."""

    STORY = " ".join(f"On day {i} the bird flew {i * 37 % 100} miles over the sea and rested on a rock." for i in range(80))
    ASK = {"model": MODEL.stem, "seed": 5, "max_tokens": 24, "temperature": 0.8}

    @classmethod
    def setUpClass(cls):
        node = Node()
        try:
            cls.turns = cls.two_turns(node)
            cls.short = answer_of(node)
            cls.rounds = [cls.chat(node, number) for number in range(cls.ROUNDS)]
        finally:
            node.close()

    ROUNDS = 4

    def setUp(self):
        self.mesh = Mesh(core="gateway,session,router,tokenizer", prompts="prefill", streams="decode,cache")
        self.addCleanup(self.mesh.close)

    @classmethod
    def chat(cls, node, number):
        """A completion over a long prompt that no other one begins like: what it says, and its usage."""
        content = f"Story {number}. {cls.STORY} Why?"
        answer = node.call("POST", "/v1/chat/completions", {**cls.ASK, "messages": [{"role": "user", "content": content}]})
        assert answer.status == 200, answer.body
        return answer.json["choices"], answer.json["usage"]

    @classmethod
    def two_turns(cls, node):
        """A long question and one more; with what each turn cost."""
        session = node.session(sampling={**SAMPLING, "max_tokens": 24})
        said = [joined(node.say(session, cls.STORY)), joined(node.say(session, "And then?"))]
        usage = node.call("GET", f"/v1/sessions/{session}").json["usage"]
        return said, usage

    def start(self):
        nodes = self.mesh.start("core", "prompts", "streams")
        self.until_prompts(nodes[0], 1)
        self.until_known(nodes[2])
        return nodes

    @staticmethod
    def until_prompts(core, count):
        def seen():
            router = next(each for each in core.call("GET", "/v1/actors?node=core").json["data"] if each["name"] == "router")
            return router["gauges"]["prompt_nodes"] == count and router["gauges"]["workers"] >= 1
        until(seen, f"{count} nodes for prompts are known")

    @staticmethod
    def until_known(streams):
        """Until that node, too, knows that prompts are computed elsewhere: each hears of it in its own time."""
        def seen():
            return any(each["name"] == "prompts" and each["state"] == "ready" for each in streams.call("GET", "/v1/nodes").json["data"])
        until(seen, "the node with the streams knows the one for prompts")

    def test_text_and_usage_are_those_of_one_node(self):
        core, prompts, streams = self.start()
        self.assertEqual(self.two_turns(core), self.turns)
        self.assertEqual(self.chat(core, 0), self.rounds[0])
        # The same again is found where the streams are.
        again = self.chat(core, 0)
        self.assertEqual(again[0], self.rounds[0][0])
        self.assertGreater(again[1]["prompt_tokens_details"]["cached_tokens_by_tier"]["device"], 1000)
        self.assertEqual(answer_of(core), self.short)
        self.assertEqual(streams.metric("godwit_handover_brought_prompts_total"), 2)
        self.assertGreater(prompts.metric("godwit_prefilled_tokens_total"), 3000)
        self.assertLess(streams.metric("godwit_prefilled_tokens_total"), 500)
        self.assertEqual(prompts.metric("godwit_handover_open"), 0)
        self.assertEqual(prompts.metric("godwit_handover_kept_blocks"), 0)
        self.assertEqual(streams.metric("godwit_handover_waiting"), 0)
        listed = core.call("GET", "/v1/nodes").json["data"]
        self.assertEqual([each["roles"] for each in listed][1:], [["prefill"], ["decode", "cache"]])

    def killed(self, number, moment):
        """One completion during which the node for prompts is killed when something shows."""
        said = []
        asks = threading.Thread(target=lambda: said.append(self.chat(self.core, number)))
        asks.start()
        deadline = time.monotonic() + 30
        while not moment() and asks.is_alive() and time.monotonic() < deadline:
            time.sleep(0.002)
        self.prompts.stop(kill=True)
        asks.join()
        self.assertEqual([choices for choices, _ in said], [self.rounds[number][0]])
        # Nothing but the template's first words was there before.
        self.assertLessEqual(said[0][1]["prompt_tokens_details"]["cached_tokens"], 16)
        self.assertEqual(self.streams.metric("godwit_handover_waiting"), 0)

    def test_the_node_for_prompts_may_be_killed_at_any_time(self):
        self.core, self.prompts, self.streams = self.start()
        lost = self.streams.metric("godwit_handover_lost_total")
        # While it computes.
        self.killed(0, lambda: self.prompts.metric("godwit_prefilled_tokens_total") > 500)
        self.assertEqual(self.streams.metric("godwit_handover_lost_total"), lost + 1)
        self.assertEqual(self.streams.metric("godwit_handover_brought_blocks_total"), 0)
        # While blocks are on their way, which takes some luck.
        for number in range(1, self.ROUNDS - 1):
            self.prompts.start()
            self.mesh.wait_ready(self.prompts)
            self.until_prompts(self.core, 1)
            self.until_known(self.streams)
            whole = self.streams.metric("godwit_handover_brought_prompts_total")
            brought = self.streams.metric("godwit_handover_brought_blocks_total")
            self.killed(number, lambda: self.prompts.metric("godwit_handover_given_blocks_total") > 30)
            some = self.streams.metric("godwit_handover_brought_blocks_total") > brought
            if self.streams.metric("godwit_handover_brought_prompts_total") == whole and some:
                break
        # Without any, and when it is back.
        self.until_prompts(self.core, 0)
        last = self.ROUNDS - 1
        self.assertEqual(self.chat(self.core, last)[0], self.rounds[last][0])
        self.prompts.start()
        self.mesh.wait_ready(self.prompts)
        self.until_prompts(self.core, 1)
        self.until_known(self.streams)
        before = self.prompts.metric("godwit_handover_given_blocks_total")
        session = self.core.session(sampling={**SAMPLING, "max_tokens": 24})
        self.assertEqual(joined(self.core.say(session, self.STORY)), self.turns[0][0])
        self.assertGreater(self.prompts.metric("godwit_handover_given_blocks_total"), before)

    def test_the_node_with_the_streams_may_be_killed(self):
        core, prompts, streams = self.start()
        session = core.session(sampling={**SAMPLING, "max_tokens": 24})
        answer = core.call("POST", f"/v1/sessions/{session}/messages", {"content": self.STORY})
        self.assertEqual(answer.status, 202, answer.body)
        until(lambda: prompts.metric("godwit_prefilled_tokens_total") > 500, "the prompt is being computed")
        streams.stop(kill=True)
        # Nothing is kept for a node that is gone.
        until(lambda: prompts.metric("godwit_handover_open") == 0, "the order is let go")
        streams.start()
        self.assertEqual(told(core, session), self.turns[0][0])
        self.assertEqual(prompts.metric("godwit_handover_kept_blocks"), 0)

    def test_a_client_that_leaves_frees_both_nodes(self):
        core, prompts, streams = self.start()
        session = core.session(sampling={**SAMPLING, "max_tokens": 24})
        answer = core.call("POST", f"/v1/sessions/{session}/messages", {"content": self.STORY})
        self.assertEqual(answer.status, 202, answer.body)
        until(lambda: prompts.metric("godwit_prefilled_tokens_total") > 200, "the prompt is being computed")
        cancelled = core.call("POST", f"/v1/sessions/{session}/cancel")
        self.assertEqual(cancelled.status, 200, cancelled.body)
        until(lambda: prompts.metric("godwit_handover_open") == 0, "the order is let go")
        until(lambda: prompts.metric("godwit_running_sequences") == 0, "its pages are free")
        self.assertLess(prompts.metric("godwit_prefilled_tokens_total"), 1500)
        self.assertEqual(streams.metric("godwit_handover_waiting"), 0)


if __name__ == "__main__":
    unittest.main()

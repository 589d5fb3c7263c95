"""Sessions over HTTP: events, resume, idempotency, cancel, forks, what a message does while a turn runs."""

import contextlib
import threading
import time
import unittest

from harness import ENDS, WithNode, ids_of, text_of

GREEDY = {"sampling": {"temperature": 0, "max_tokens": 24}}
LONG = {"sampling": {"temperature": 0.8, "seed": 3, "max_tokens": 400}}
STORY = "Write a long story about a harbour."


class Sessions(WithNode):
    def test_a_turn_streams_its_events_in_order_and_reads_back_the_same(self):
        session = self.node.session(**GREEDY)
        seen = self.node.say(session, "What colour is the sky on a clear day?")
        self.assertEqual([event.type for event in seen[:2]], ["message.accepted", "turn.started"])
        self.assertEqual(seen[-1].type, "turn.completed")
        self.assertTrue(text_of(seen).startswith("The sky on a clear day is"))
        ids = [int(event.id) for event in seen]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual([event.id for event in seen], sorted(event.id for event in seen))
        self.assertEqual(self.node.events(session), seen)
        self.assertEqual(self.node.events(session), seen)
        usage = seen[-1].json["usage"]
        self.assertEqual(usage["prompt_tokens"], 40)
        self.assertEqual(usage["completion_tokens"], len(ids_of(seen)))

    def test_events_resume_after_an_id_and_the_header_wins(self):
        session = self.node.session(**GREEDY)
        seen = self.node.say(session, "What colour is the sky on a clear day?")
        self.assertEqual(self.node.events(session, after=seen[3].id), seen[4:])
        stream = self.node.stream("GET", f"/v1/sessions/{session}/events?after={seen[0].id}",
                                  headers={"Last-Event-ID": seen[4].id})
        with contextlib.closing(stream):
            self.assertEqual(stream.next(), seen[5])

    def test_an_event_id_of_another_session_or_of_none_is_refused(self):
        one, two = self.node.session(**GREEDY), self.node.session(**GREEDY)
        seen = self.node.say(one, "Hi")
        for after in (seen[0].id, "x", "-1", str(int(seen[-1].id) + 10**6), "9" * 40):
            path = f"/v1/sessions/{two}/events?after={after}"
            self.assert_error(self.node.call("GET", path), 400, param="after")
        future = str(int(seen[-1].id) + 10**6)
        self.assert_error(self.node.call("GET", f"/v1/sessions/{one}/events?after={future}"), 400, param="after")

    def test_without_following_a_stream_ends_behind_the_last_event(self):
        session = self.node.session(**GREEDY)
        seen = self.node.say(session, "Hi")
        path = f"/v1/sessions/{session}/events?follow=0"
        for after, expected in (("", seen), (f"&after={seen[2].id}", seen[3:]), (f"&after={seen[-1].id}", [])):
            with self.subTest(after=after), contextlib.closing(self.node.stream("GET", path + after)) as stream:
                self.assertEqual(stream.status, 200)
                self.assertEqual(stream.rest(), expected)
        with contextlib.closing(self.node.stream("GET", path + "&snapshot=1")) as stream:
            self.assertEqual([event.type for event in stream.rest()], ["snapshot"])
        self.assert_error(self.node.call("GET", path + "2"), 400, param="follow")

    def test_a_session_object_tells_its_state(self):
        session = self.node.session(system="Be short.", metadata={"team": "a"}, ttl_s=3600, **GREEDY)
        self.node.say(session, "Hi")
        shown = self.node.call("GET", f"/v1/sessions/{session}").json
        self.assertEqual(shown["id"], session)
        self.assertEqual(shown["status"], "idle")
        self.assertEqual(shown["turns"], 1)
        self.assertEqual(shown["metadata"], {"team": "a"})
        self.assertEqual(shown["expires_at"] - shown["created_at"], 3600)
        self.assertEqual(set(shown["owner"]), {"node", "epoch"})
        self.assertEqual(set(shown["kv"]), {"device", "host", "disk"})
        self.assertGreater(shown["journal"]["sequence"], 2)
        everything = self.node.events(session)
        self.assertEqual(self.node.events(session, after=shown["journal"]["oldest_event"]), everything)

    def test_turns_build_on_each_other_and_reuse_the_cache(self):
        session = self.node.session(sampling={"temperature": 0, "max_tokens": 40})
        self.node.say(session, "My name is Alice and I live in Paris. Remember that, please, for all that follows.")
        before = self.node.metric("godwit_prefilled_tokens_total")
        second = self.node.say(session, "What is my name?")
        usage = second[-1].json["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        self.assertGreaterEqual(cached, 48)
        prefilled = self.node.metric("godwit_prefilled_tokens_total") - before
        self.assertEqual(prefilled, usage["prompt_tokens"] - cached)
        transcript = self.node.call("GET", f"/v1/sessions/{session}/transcript").json["messages"]
        self.assertEqual([message["role"] for message in transcript][-4:], ["user", "assistant", "user", "assistant"])
        self.assertEqual(transcript[-1]["content"], text_of(second))

    def test_the_same_key_gives_the_stored_answer_and_another_body_is_refused(self):
        session = self.node.session(**GREEDY)
        first = self.node.say(session, "Hi", key="k1")
        self.assertEqual(self.node.say(session, "Hi", key="k1"), first)
        again = self.node.call("POST", f"/v1/sessions/{session}/messages", {"content": "Hi"}, {"Idempotency-Key": "k1"})
        self.assertEqual(again.status, 202)
        self.assertEqual(again.json["turn"], 1)
        other = self.node.call("POST", f"/v1/sessions/{session}/messages", {"content": "Ho"}, {"Idempotency-Key": "k1"})
        self.assertEqual(other.status, 422)
        self.assertEqual(self.node.call("GET", f"/v1/sessions/{session}").json["turns"], 1)

    def test_the_same_key_attaches_to_the_running_turn(self):
        session = self.node.session(**LONG)
        path = f"/v1/sessions/{session}/messages"
        first = self.node.call("POST", path, {"content": STORY}, {"Idempotency-Key": "k"})
        second = self.node.call("POST", path, {"content": STORY}, {"Idempotency-Key": "k"})
        self.assertEqual((first.status, first.json), (second.status, second.json))
        self.node.call("POST", f"/v1/sessions/{session}/cancel", {})
        ends = [event.type for event in self.node.events(session) if event.type in ENDS]
        self.assertEqual(ends, ["turn.cancelled"])

    def test_cancel_ends_the_turn_once_and_keeps_what_was_released(self):
        session = self.node.session(**LONG)
        stream = self.node.stream("POST", f"/v1/sessions/{session}/messages", {"content": STORY, "stream": True})
        seen = [stream.next() for _ in range(6)]
        answer = self.node.call("POST", f"/v1/sessions/{session}/cancel", {})
        self.assertEqual(answer.status, 200, answer.body)
        again = self.node.call("POST", f"/v1/sessions/{session}/cancel", {})
        self.assertEqual(again.status, 200, again.body)
        seen += stream.until(*ENDS)
        stream.close()
        self.assertEqual(seen[-1].type, "turn.cancelled")
        self.assertEqual(self.node.events(session), seen)
        shown = self.node.call("GET", f"/v1/sessions/{session}").json
        self.assertEqual(shown["status"], "idle")
        transcript = self.node.call("GET", f"/v1/sessions/{session}/transcript").json["messages"]
        self.assertEqual(transcript[-1]["content"], text_of(seen))

    def test_a_client_that_leaves_changes_nothing_unless_it_asked_for_it(self):
        for more, end in (({}, "turn.completed"), ({"on_disconnect": "cancel"}, "turn.cancelled")):
            with self.subTest(end=end):
                session = self.node.session(sampling={"temperature": 0.8, "seed": 1, "max_tokens": 60})
                body = {"content": STORY, "stream": True, **more}
                stream = self.node.stream("POST", f"/v1/sessions/{session}/messages", body)
                for _ in range(4):
                    stream.next()
                stream.response.close()
                stream.close()
                self.assertEqual(self.node.events(session)[-1].type, end)

    def test_messages_queue_are_refused_or_interrupt(self):
        def twice(on_busy):
            session = self.node.session(on_busy=on_busy, sampling={"temperature": 0.8, "seed": 1, "max_tokens": 40})
            path = f"/v1/sessions/{session}/messages"
            first = self.node.call("POST", path, {"content": STORY})
            second = self.node.call("POST", path, {"content": "Hi"})
            self.assertEqual(first.status, 202)
            return session, second

        session, second = twice("queue")
        self.assertEqual(second.status, 202)
        self.assertEqual(second.json["turn"], 2)
        events = self.node.events(session, turns=2)
        self.assertEqual([event.type for event in events if event.type in ENDS], ["turn.completed"] * 2)
        started = [event.json["turn"] for event in events if event.type == "turn.started"]
        self.assertEqual(started, [1, 2])

        session, second = twice("reject")
        self.assert_error(second, 409, code="turn_running")

        session, second = twice("interrupt")
        self.assertEqual(second.status, 202)
        events = self.node.events(session, turns=2)
        self.assertEqual([event.type for event in events if event.type in ENDS], ["turn.cancelled", "turn.completed"])

    def test_a_fork_shares_the_past_and_goes_its_own_way(self):
        session = self.node.session(**GREEDY)
        first = self.node.say(session, "My favourite colour is green.")
        fork = self.node.call("POST", f"/v1/sessions/{session}/fork", {})
        self.assertEqual(fork.status, 201, fork.body)
        copy = fork.json["id"]
        self.assertNotEqual(copy, session)
        mine = self.node.say(session, "What is my favourite colour?")
        theirs = self.node.say(copy, "What is my favourite colour?")
        self.assertEqual(ids_of(mine), ids_of(theirs))
        self.assertEqual(self.node.call("DELETE", f"/v1/sessions/{session}").status, 200)
        self.assertEqual(self.node.call("GET", f"/v1/sessions/{session}").status, 404)
        transcript = self.node.call("GET", f"/v1/sessions/{copy}/transcript").json["messages"]
        self.assertIn(text_of(first), [message["content"] for message in transcript])
        self.assertTrue(self.node.say(copy, "Thanks."))

    def test_a_fork_at_a_turn_and_at_an_event_keeps_what_came_before(self):
        session = self.node.session(**GREEDY)
        first = self.node.say(session, "Count to three.")
        self.node.say(session, "Now to five.")
        for at in ("1", first[-1].id):
            fork = self.node.call("POST", f"/v1/sessions/{session}/fork", {"at": at})
            self.assertEqual(fork.status, 201, fork.body)
            self.assertEqual(fork.json["turns"], 1)
            transcript = self.node.call("GET", f"/v1/sessions/{fork.json['id']}/transcript").json["messages"]
            self.assertEqual(transcript[-1]["content"], text_of(first))
        self.assertEqual(self.node.call("POST", f"/v1/sessions/{session}/fork", {"at": "77"}).status, 400)

    def test_lists_are_paged_and_tenants_do_not_see_each_other(self):
        tenant = {"X-Tenant-ID": "list-test"}
        made = sorted(self.node.session(headers=tenant) for _ in range(5))
        got, after = [], ""
        while True:
            page = self.node.call("GET", "/v1/sessions?limit=2" + after, headers=tenant).json
            got += [session["id"] for session in page["data"]]
            if not page["has_more"]:
                break
            after = "&after=" + got[-1]
        self.assertEqual(got, made)
        for path in ("", "/events", "/transcript"):
            self.assertEqual(self.node.call("GET", f"/v1/sessions/{made[0]}{path}").status, 404)
        self.assertEqual(self.node.call("DELETE", f"/v1/sessions/{made[0]}").status, 404)

    def test_a_snapshot_stands_for_a_place_and_the_tail_follows(self):
        session = self.node.session(**GREEDY)
        seen = self.node.say(session, "Hi")
        stream = self.node.stream("GET", f"/v1/sessions/{session}/events?snapshot=1")
        with contextlib.closing(stream):
            snapshot = stream.next()
            self.assertEqual(snapshot.type, "snapshot")
            self.assertEqual(snapshot.id, seen[-1].id)
            more = self.node.say(session, "And you?")
            self.assertEqual(stream.next(), more[0])

    def test_many_sessions_at_once_give_what_each_gives_alone(self):
        questions = [f"Say something about the number {number}." for number in range(8)]
        alone = [ids_of(self.node.say(self.node.session(**GREEDY), question)) for question in questions]
        together = [None] * len(questions)

        def run(index):
            together[index] = ids_of(self.node.say(self.node.session(**GREEDY), questions[index]))

        threads = [threading.Thread(target=run, args=(index,)) for index in range(len(questions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)

    def test_an_unknown_session_is_404_everywhere(self):
        missing = "/v1/sessions/ses_" + "0" * 32
        for method, rest in (("GET", ""), ("GET", "/events"), ("GET", "/transcript"), ("POST", "/messages"),
                             ("POST", "/cancel"), ("POST", "/fork"), ("DELETE", "")):
            body = {"content": "x"} if rest == "/messages" else ({} if method == "POST" else None)
            with self.subTest(method=method, rest=rest):
                self.assert_error(self.node.call(method, missing + rest, body), 404)

    def test_heartbeats_keep_an_idle_stream_open(self):
        session = self.node.session()
        stream = self.node.stream("GET", f"/v1/sessions/{session}/events", timeout=25)
        with contextlib.closing(stream):
            started = time.monotonic()
            while True:
                line = stream.response.readline()
                self.assertTrue(line, "the stream ended")
                if line.startswith(b":"):
                    break
            self.assertLess(time.monotonic() - started, 17)


if __name__ == "__main__":
    unittest.main()

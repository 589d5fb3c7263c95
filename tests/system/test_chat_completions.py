"""The compatible API: shapes, streams, choices, stops, log-probabilities, usage."""

import contextlib
import json
import unittest

from harness import ROOT, WithNode

GOLDEN = json.loads((ROOT / "tests" / "golden" / "smollm2.json").read_text())
URL = "/v1/chat/completions"
PROMPT_TOKENS = 40  # with the system message that the template adds
SKY = [{"role": "user", "content": "What colour is the sky on a clear day?"}]


class ChatCompletions(WithNode):
    def complete(self, messages=SKY, **more):
        answer = self.node.call("POST", URL, {"model": self.model, "messages": messages, "temperature": 0, **more})
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def chunks(self, messages=SKY, **more):
        """The JSON chunks of a streamed answer; checks the frame around them."""
        body = {"model": self.model, "messages": messages, "temperature": 0, "stream": True, **more}
        stream = self.node.stream("POST", URL, body)
        self.assertEqual(stream.status, 200)
        self.assertTrue(stream.response.headers["Content-Type"].startswith("text/event-stream"))
        with contextlib.closing(stream):
            events = stream.rest()
        self.assertEqual(events[-1].data, "[DONE]")
        return [event.json for event in events[:-1]]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.node.call("GET", "/v1/models").json["data"][0]["id"]

    def test_models_are_listed_and_shown(self):
        listed = self.node.call("GET", "/v1/models").json
        self.assertEqual(listed["object"], "list")
        shown = self.node.call("GET", f"/v1/models/{self.model}").json
        self.assertEqual(shown, listed["data"][0])
        self.assertEqual(shown["object"], "model")
        self.assertEqual(self.node.call("GET", "/v1/models/none").status, 404)

    def test_an_answer_has_the_published_shape(self):
        answer = self.complete()
        self.assertEqual(answer["object"], "chat.completion")
        self.assertEqual(answer["model"], self.model)
        self.assertTrue(answer["id"].startswith("chatcmpl-"))
        choice = answer["choices"][0]
        self.assertEqual(choice["index"], 0)
        self.assertEqual(choice["message"]["role"], "assistant")
        self.assertTrue(choice["message"]["content"].startswith("The sky on a clear day is"))
        self.assertEqual(choice["finish_reason"], "stop")
        usage = answer["usage"]
        self.assertEqual(usage["prompt_tokens"], PROMPT_TOKENS)
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])

    def test_greedy_answers_begin_as_the_golden_continuations(self):
        """Up to where the golden best two are near each other: there, 8-bit activations may rightly choose otherwise."""
        compared = 0
        for case in GOLDEN["greedy"]:
            near = [step["top"][0][1] - step["top"][1][1] < 0.5 for step in case["steps"]]
            clear = near.index(True) if True in near else len(near)
            answer = self.complete(case["messages"], max_tokens=max(1, clear))
            if clear > 0:
                self.assertTrue(case["text"].startswith(answer["choices"][0]["message"]["content"]))
            compared += clear
        self.assertGreater(compared, 10)

    def test_a_stream_joins_to_the_plain_answer(self):
        for more in ({}, {"max_tokens": 3}, {"stop": [" is"]}, {"temperature": 0.9, "seed": 5, "max_tokens": 30}):
            with self.subTest(more=more):
                plain = self.complete(**more)
                chunks = self.chunks(**more)
                self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
                text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
                self.assertEqual(text, plain["choices"][0]["message"]["content"])
                reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
                self.assertEqual(reasons[-1], plain["choices"][0]["finish_reason"])
                self.assertEqual(set(reasons[:-1]), {None})
                self.assertEqual(len({chunk["id"] for chunk in chunks}), 1)
                self.assertTrue(all("usage" not in chunk or chunk["usage"] is None for chunk in chunks))

    def test_usage_comes_last_in_a_stream_when_asked_for(self):
        chunks = self.chunks(stream_options={"include_usage": True})
        self.assertEqual(chunks[-1]["choices"], [])
        self.assertEqual(chunks[-1]["usage"]["prompt_tokens"], PROMPT_TOKENS)
        self.assertTrue(all(chunk["usage"] is None for chunk in chunks[:-1]))

    def test_stop_strings_end_the_text_before_them(self):
        answer = self.complete(stop=["clear", "zebra"])
        self.assertEqual(answer["choices"][0]["message"]["content"], "The sky on a ")
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        self.assertEqual(self.complete(stop=" sky")["choices"][0]["message"]["content"], "The")

    def test_length_limits_end_with_length(self):
        for name in ("max_tokens", "max_completion_tokens"):
            answer = self.complete(**{name: 3})
            self.assertEqual(answer["choices"][0]["finish_reason"], "length")
            self.assertEqual(answer["usage"]["completion_tokens"], 3)

    def test_a_seed_repeats_and_choices_differ(self):
        settings = {"temperature": 1.2, "seed": 42, "max_tokens": 20, "n": 3}
        first, second = self.complete(**settings), self.complete(**settings)
        texts = [choice["message"]["content"] for choice in first["choices"]]
        self.assertEqual(texts, [choice["message"]["content"] for choice in second["choices"]])
        self.assertEqual([choice["index"] for choice in first["choices"]], [0, 1, 2])
        self.assertGreater(len(set(texts)), 1)
        self.assertEqual(first["usage"]["prompt_tokens"], PROMPT_TOKENS)
        streamed = ["", "", ""]
        for chunk in self.chunks(**settings):
            for choice in chunk["choices"]:
                streamed[choice["index"]] += choice["delta"].get("content") or ""
        self.assertEqual(streamed, texts)

    def test_log_probabilities_have_the_published_shape(self):
        answer = self.complete(logprobs=True, top_logprobs=3, max_tokens=4)
        tokens = answer["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(tokens), 4)
        self.assertEqual("".join(token["token"] for token in tokens), answer["choices"][0]["message"]["content"])
        golden = GOLDEN["greedy"][2]["steps"]
        for token, step in zip(tokens, golden):
            self.assertEqual(bytes(token["bytes"]).decode(), token["token"])
            self.assertEqual(len(token["top_logprobs"]), 3)
            self.assertEqual(token["top_logprobs"][0]["token"], token["token"])
            self.assertLessEqual(token["logprob"], 0)
            self.assertAlmostEqual(token["logprob"], step["top"][0][1] - step["logsumexp"], delta=0.3)
        self.assertIsNone(self.complete(max_tokens=2)["choices"][0]["logprobs"])

    def test_bias_and_penalties_change_the_answer(self):
        plain = self.complete(max_tokens=10)["choices"][0]["message"]["content"]
        first = GOLDEN["greedy"][2]["steps"][0]["id"]
        biased = self.complete(max_tokens=10, logit_bias={str(first): -100})["choices"][0]["message"]["content"]
        self.assertNotEqual(biased, plain)
        forced = self.complete(max_tokens=5, logit_bias={str(first): 100})
        self.assertEqual(forced["usage"]["completion_tokens"], 5)
        word = forced["choices"][0]["message"]["content"]
        self.assertEqual(word, word[: len(word) // 5] * 5)

    def test_cached_tokens_are_counted(self):
        messages = [{"role": "user", "content": "Count the letters of this sentence. " * 20}]
        body = {"model": self.model, "messages": messages, "max_tokens": 2}
        tenant = {"X-Tenant-ID": "cache-test"}
        first = self.node.call("POST", URL, body, tenant).json["usage"]
        second = self.node.call("POST", URL, body, tenant).json["usage"]
        self.assertEqual(first["prompt_tokens_details"]["cached_tokens"], 0)
        cached = second["prompt_tokens_details"]["cached_tokens"]
        self.assertEqual(cached, (second["prompt_tokens"] - 1) // 16 * 16)
        answer = self.node.call("POST", URL, body, {"X-Tenant-ID": "someone-else"})
        self.assertEqual(answer.json["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_content_may_be_text_parts_and_system_or_developer_lead(self):
        parts = [{"role": "user", "content": [{"type": "text", "text": "What colour is the sky "},
                                              {"type": "text", "text": "on a clear day?"}]}]
        self.assertEqual(self.complete(parts)["choices"], self.complete()["choices"])
        for role in ("system", "developer"):
            answer = self.complete([{"role": role, "content": "Answer in one word."}, *SKY], max_tokens=5)
            self.assertNotEqual(answer["usage"]["prompt_tokens"], PROMPT_TOKENS)

    def test_every_byte_of_an_answer_is_valid_utf8(self):
        answer = self.complete([{"role": "user", "content": "Write ten emoji and some Chinese."}], max_tokens=60,
                               temperature=1.0, seed=3)
        text = answer["choices"][0]["message"]["content"]
        self.assertEqual(text.encode().decode(), text)


if __name__ == "__main__":
    unittest.main()

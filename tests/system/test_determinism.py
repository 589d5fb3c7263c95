"""The same prompt gives the same bytes alone and in a batch, with every chunk size and number of threads, over a restart."""

import json
import threading
import unittest

from harness import Node

URL = "/v1/chat/completions"
PROMPTS = [f"Write two sentences about the number {number} and about why some people like it." for number in range(7)]
LONG = "Here is a list of words: " + " ".join(f"word{number}" for number in range(300)) + ". What is this?"


def ask(node, content, out, index):
    body = {"model": node.model_id, "messages": [{"role": "user", "content": content}], "temperature": 0.8, "seed": 9,
            "max_tokens": 40, "logprobs": True, "top_logprobs": 2}
    answer = node.call("POST", URL, body)
    assert answer.status == 200, answer.body
    # Log-probabilities too: they show a bit that a token hides.
    out[index] = json.dumps(answer.json["choices"], sort_keys=True)


class Determinism(unittest.TestCase):
    def answers(self, config, together):
        node = Node(config=config)
        try:
            node.model_id = node.call("GET", "/v1/models").json["data"][0]["id"]
            prompts = [*PROMPTS, LONG]
            out = [None] * len(prompts)
            if not together:
                for index, prompt in enumerate(prompts):
                    ask(node, prompt, out, index)
                return out
            threads = [threading.Thread(target=ask, args=(node, prompt, out, index)) for index, prompt in enumerate(prompts)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return out
        finally:
            node.close()

    def test_neither_batch_nor_chunks_nor_threads_change_a_bit(self):
        golden = self.answers("threads = 2\n", together=False)
        for config in ("threads = 1\n", "threads = 2\nchunk_tokens = 16\nstep_tokens = 16\n", "threads = 2\nchunk_tokens = 64\nstep_tokens = 64\n",
                       "threads = 1\nchunk_tokens = 512\n"):
            with self.subTest(config=config):
                self.assertEqual(self.answers(config, together=True), golden)


if __name__ == "__main__":
    unittest.main()

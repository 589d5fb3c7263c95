"""The tiers of the KV cache below the device, seen from outside: what survives a death, what a suspension costs, and what a bad disk does."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

from harness import GODWIT, PATIENCE, Node, text_of

URL = "/v1/chat/completions"
STORY = "A ship leaves the harbour at dawn with a crew of nine, and nobody on the quay waves. " * 12
BLOCK = 16


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


class CacheTiers(unittest.TestCase):
    def node(self, *flags):
        node = Node(*flags)
        self.addCleanup(node.close)
        return node

    def complete(self, node, text=STORY):
        body = {"model": node.call("GET", "/v1/models").json["data"][0]["id"], "temperature": 0, "max_tokens": 12, "seed": 1,
                "messages": [{"role": "user", "content": text}]}
        answer = node.call("POST", URL, body)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json["choices"][0]["message"]["content"], answer.json["usage"]

    def tiers(self, usage):
        details = usage["prompt_tokens_details"]
        by_tier = details["cached_tokens_by_tier"]
        self.assertEqual(sum(by_tier.values()), details["cached_tokens"])
        return by_tier

    def kv(self, node, session):
        return node.call("GET", f"/v1/sessions/{session}").json["kv"]

    def test_a_killed_node_finds_its_prefixes_on_disk_and_answers_the_same(self):
        node = self.node()
        first, usage = self.complete(node)
        full = (usage["prompt_tokens"] - 1) // BLOCK * BLOCK
        self.assertEqual(self.tiers(usage), {"device": 0, "host": 0, "disk": 0})
        again, usage = self.complete(node)
        self.assertEqual(self.tiers(usage), {"device": full, "host": 0, "disk": 0})
        # It was asked for twice: it is written.
        wait_until(lambda: node.metric("godwit_cache_stored_blocks_total") >= full / BLOCK)
        node.stop(kill=True)
        node.start()
        third, usage = self.complete(node)
        self.assertEqual(self.tiers(usage), {"device": 0, "host": 0, "disk": full})
        self.assertEqual({first, again, third}, {first})
        self.assertEqual(node.metric("godwit_prefilled_tokens_total"), usage["prompt_tokens"] - full)
        self.assertEqual(node.metric("godwit_cache_disk_hits_total"), full / BLOCK)
        self.assertEqual(node.metric("godwit_prompt_disk_tokens_total"), full)
        # Another text is found nowhere, and the next time this one is on the device.
        self.assertEqual(self.tiers(self.complete(node, "Hello.")[1])["disk"], 0)
        self.assertEqual(self.tiers(self.complete(node)[1])["device"], full)

    def suspend_and_resume(self, node, lowest):
        session = node.session(sampling={"temperature": 0, "max_tokens": 30})
        first = node.say(session, STORY)[-1].json["usage"]
        self.assertGreater(self.kv(node, session)["device"], 0)
        free = node.metric("godwit_kv_free_blocks")
        answer = node.call("POST", f"/v1/sessions/{session}/suspend")
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.json["status"], "suspended")
        self.assertEqual(answer.json["kv"]["device"], 0)
        self.assertGreater(node.metric("godwit_kv_free_blocks"), free)
        known = first["prompt_tokens"] + first["completion_tokens"]
        if lowest:
            self.assertEqual(answer.json["kv"][lowest], (known - 1) // BLOCK * BLOCK)
        self.assertEqual(node.call("GET", f"/v1/sessions/{session}").json["status"], "suspended")
        before = node.metric("godwit_prefilled_tokens_total")
        second = node.say(session, "What is the ship called?")
        self.assertEqual(second[-1].type, "turn.completed")
        prefilled = node.metric("godwit_prefilled_tokens_total") - before
        new = second[-1].json["usage"]["prompt_tokens"] - known
        return session, prefilled, new, second[-1].json["usage"], text_of(second)

    def test_a_suspended_session_goes_on_with_at_most_a_block_and_the_new_tokens(self):
        answers = set()
        for flags, lowest in (((), "disk"), (("--cache-cold-bytes", "0"), "host")):
            with self.subTest(lowest=lowest):
                node = self.node(*flags)
                _, prefilled, new, usage, text = self.suspend_and_resume(node, lowest)
                self.assertLessEqual(prefilled, BLOCK + new)
                self.assertGreater(self.tiers(usage)[lowest], 0)
                answers.add(text)
        # Without lower tiers it is computed again, and the same is said.
        node = self.node("--cache-cold-bytes", "0", "--cache-host-bytes", "0")
        _, prefilled, new, usage, text = self.suspend_and_resume(node, None)
        self.assertGreater(prefilled, BLOCK + new)
        answers.add(text)
        self.assertEqual(len(answers), 1)

    def test_a_suspended_session_survives_the_death_of_its_node(self):
        node = self.node()
        session = node.session(sampling={"temperature": 0, "max_tokens": 30})
        first = node.say(session, STORY)[-1].json["usage"]
        disk = node.call("POST", f"/v1/sessions/{session}/suspend").json["kv"]["disk"]
        node.stop(kill=True)
        node.start()
        self.assertEqual(self.kv(node, session), {"device": 0, "host": 0, "disk": disk})
        second = node.say(session, "What is the ship called?")[-1].json["usage"]
        new = second["prompt_tokens"] - first["prompt_tokens"] - first["completion_tokens"]
        self.assertLessEqual(node.metric("godwit_prefilled_tokens_total"), BLOCK + new)
        self.assertEqual(self.tiers(second)["disk"], disk)

    def test_a_running_session_is_not_suspended(self):
        node = self.node()
        session = node.session(sampling={"temperature": 0, "max_tokens": 200})
        with_stream = node.stream("POST", f"/v1/sessions/{session}/messages", {"content": "Tell me a story.", "stream": True})
        with_stream.until("token")
        refused = node.call("POST", f"/v1/sessions/{session}/suspend")
        self.assertEqual(refused.status, 409)
        self.assertEqual(refused.json["error"]["code"], "turn_running")
        with_stream.close()

    def test_pages_of_another_type_are_not_found_on_disk(self):
        node = self.node("--kv-type", "int8")
        first, usage = self.complete(node)
        full = (usage["prompt_tokens"] - 1) // BLOCK * BLOCK
        self.assertEqual(self.complete(node)[0], first)
        wait_until(lambda: node.metric("godwit_cache_stored_blocks_total") >= full / BLOCK)
        for kv, disk in (("bf16", 0), ("int8", full)):
            node.stop()
            node.flags = ["--kv-type", kv]
            node.start()
            text, usage = self.complete(node)
            self.assertEqual(self.tiers(usage), {"device": 0, "host": 0, "disk": disk})
        self.assertEqual(text, first)

    def flood(self, node, name):
        """Other prompts, which together want more than a pool of 2,048 tokens."""
        for i in range(10):
            self.complete(node, f"{name} {i}: " + STORY)

    def test_a_pinned_session_stays_on_the_device_until_its_pin_ends(self):
        node = self.node("--kv-tokens", "2048", "--cache-cold-bytes", "0", "--cache-host-bytes", "0")
        session = node.session(sampling={"temperature": 0, "max_tokens": 30})
        refused = node.call("POST", f"/v1/sessions/{session}/pin", {"ttl_seconds": 60})
        self.assertEqual((refused.status, refused.json["error"]["code"]), (409, "nothing_cached"))
        used = node.say(session, STORY)[-1].json["usage"]
        known = (used["prompt_tokens"] + used["completion_tokens"] - 1) // BLOCK * BLOCK
        before = int(time.time())
        pinned = node.call("POST", f"/v1/sessions/{session}/pin", {"ttl_seconds": 600})
        self.assertEqual(pinned.status, 200, pinned.body)
        self.assertEqual(pinned.json["pinned_tokens"], known)
        self.assertLessEqual(abs(pinned.json["expires_at"] - before - 600), 30)
        wait_until(lambda: node.metric("godwit_cache_pinned_blocks") == known / BLOCK)
        self.flood(node, "First")
        self.assertGreater(node.metric("godwit_cache_evicted_blocks_total"), 0)
        self.assertEqual(self.kv(node, session)["device"], known)
        ended = node.call("DELETE", f"/v1/sessions/{session}/pin")
        self.assertEqual((ended.status, ended.json["pinned_tokens"]), (200, 0))
        wait_until(lambda: node.metric("godwit_cache_pinned_blocks") == 0)
        self.flood(node, "Second")
        self.assertLess(self.kv(node, session)["device"], known)

    def test_a_pin_over_the_quota_is_refused_with_both_numbers(self):
        # A quarter of 64 blocks is 16; the story has more.
        node = self.node("--kv-tokens", "1024", "--cache-cold-bytes", "0", "--cache-host-bytes", "0")
        session = node.session(sampling={"temperature": 0, "max_tokens": 30})
        used = node.say(session, STORY)[-1].json["usage"]
        blocks = (used["prompt_tokens"] + used["completion_tokens"] - 1) // BLOCK
        self.assertGreater(blocks, 16)
        refused = node.call("POST", f"/v1/sessions/{session}/pin", {"ttl_seconds": 60})
        self.assertEqual((refused.status, refused.json["error"]["code"]), (409, "pin_quota"))
        self.assertRegex(refused.json["error"]["message"], rf"\b{blocks}\b.*\b16\b")
        self.assertEqual(node.metric("godwit_cache_pinned_blocks"), 0)

    def small_disk(self, size):
        """A file system of its own, which goes with the test."""
        place = pathlib.Path(tempfile.mkdtemp(prefix="godwit-disk-"))
        self.addCleanup(place.rmdir)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest(f"no file system can be mounted here: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "--lazy", place], check=True)
        return place

    def test_a_disk_that_runs_full_costs_no_answer_and_is_told(self):
        # The texts want 40 MB of a disk that has 16, of which the node does not know.
        disk = self.small_disk("16m")
        texts = [f"Number {i}: " + STORY for i in range(6)]
        plain = self.node("--cache-cold-bytes", "0", "--cache-host-bytes", "0")
        right = [self.complete(plain, text)[0] for text in texts]
        plain.close()
        node = self.node("--kv-tokens", "1024", "--cache-host-bytes", "0", "--cache-offload-after", "0",
                         "--cache-cold-dir", str(disk / "cold"), "--cache-cold-bytes", str(1 << 30))
        self.assertEqual(self.complete(node, texts[0])[0], right[0])
        wait_until(lambda: node.metric("godwit_cache_stored_blocks_total") > 0)
        self.assertEqual(node.metric("godwit_cache_disk_failures_total"), 0)
        with concurrent.futures.ThreadPoolExecutor(3) as clients:
            deadline = time.monotonic() + PATIENCE
            while node.metric("godwit_cache_disk_failures_total") == 0:
                self.assertLess(time.monotonic(), deadline, "the disk took all of it")
                self.assertEqual([text for text, _ in clients.map(lambda text: self.complete(node, text), texts)], right)
            # From now on too, and what was written is of use.
            hits = node.metric("godwit_cache_disk_hits_total")
            while node.metric("godwit_cache_disk_hits_total") == hits:
                self.assertLess(time.monotonic(), deadline, "nothing is read any more")
                self.assertEqual([text for text, _ in clients.map(lambda text: self.complete(node, text), texts)], right)
        wait_until(lambda: node.metric("godwit_open_streams") == 0)
        self.assertEqual(node.metric("godwit_cache_onboard_staged"), 0)
        self.assertEqual(node.stop(), 0)

    def test_a_full_pool_brings_sessions_back_from_host_memory(self):
        node = self.node("--kv-tokens", "1024", "--cache-cold-bytes", "0")
        texts = [f"Number {i}: " + STORY for i in range(4)]
        first = [self.complete(node, text)[0] for text in texts]
        for _ in range(3):
            for text, answer in zip(texts, first):
                # Twice in a row: asked for again while the device still has it.
                self.assertEqual(self.complete(node, text)[0], answer)
                again, usage = self.complete(node, text)
                self.assertEqual(again, answer)
                self.tiers(usage)
        self.assertGreater(node.metric("godwit_prompt_host_tokens_total"), 0)
        self.assertEqual(node.metric("godwit_cache_onboard_staged"), 0)


class CacheCommands(unittest.TestCase):
    """`godwit cache` on the store that a node has left."""

    def cache(self, *words):
        done = subprocess.run([GODWIT, "--json", "cache", *map(str, words)], capture_output=True, timeout=PATIENCE, check=False)
        return done.returncode, json.loads(done.stdout) if done.returncode == 0 or done.stdout else done.stderr.decode()

    def test_a_store_is_counted_checked_and_cleared_while_no_node_has_it(self):
        node = Node()
        self.addCleanup(node.close)
        model = node.call("GET", "/v1/models").json["data"][0]["id"]
        full = {}
        for tenant, text in (("acme", STORY), ("umbrella", STORY[:500])):
            body = {"model": model, "temperature": 0, "max_tokens": 4, "messages": [{"role": "user", "content": text}]}
            for _ in range(2):  # asked for twice: written
                answer = node.call("POST", URL, body, {"X-Tenant-ID": tenant})
            full[tenant] = (answer.json["usage"]["prompt_tokens"] - 1) // BLOCK
        wait_until(lambda: node.metric("godwit_cache_stored_blocks_total") >= sum(full.values()))
        code, refused = self.cache("stats", node.data)
        self.assertEqual(code, 1)
        for words in (("verify",), ("clear",)):
            self.assertEqual(self.cache(*words, node.data)[0], 1, refused)
        self.assertEqual(node.stop(), 0)

        code, stats = self.cache("stats", node.data)
        self.assertEqual(code, 0)
        self.assertEqual({name: share["blocks"] for name, share in stats["tenants"].items()}, full)
        self.assertEqual((stats["blocks"], stats["damaged"]), (sum(full.values()), 0))
        self.assertEqual(self.cache("verify", node.data / "cold"), (0, {**share_of(stats), "damaged": 0}))

        # A flipped bit is found, its block deleted, and the rest stays.
        blob = max((node.data / "cold").rglob("*.blob"), key=lambda path: path.stat().st_size)
        with blob.open("r+b") as file:
            file.seek(blob.stat().st_size // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))
        code, verdict = self.cache("verify", node.data)
        self.assertEqual((code, verdict["damaged"], verdict["blocks"]), (1, 1, stats["blocks"] - 1))
        self.assertEqual(self.cache("verify", node.data)[0], 0)

        code, gone = self.cache("clear", node.data, "--tenant", "acme")
        self.assertEqual(code, 0)
        left = self.cache("stats", node.data)[1]
        self.assertEqual(set(left["tenants"]), {"umbrella"})
        self.assertEqual(gone["blocks"] + left["blocks"], verdict["blocks"])
        self.assertEqual(self.cache("clear", node.data, "--tenant", "nobody")[1]["blocks"], 0)
        self.assertEqual(self.cache("clear", node.data)[1]["blocks"], left["blocks"])
        empty = self.cache("stats", node.data)[1]
        self.assertEqual((empty["blocks"], empty["tenants"]), (0, {}))
        self.assertEqual(self.cache("stats", node.data / "none")[0], 1)

        # The node goes on with the store, and finds nothing in it.
        node.start()
        answer = node.call("POST", URL, body, {"X-Tenant-ID": "umbrella"})
        self.assertEqual(answer.json["usage"]["prompt_tokens_details"]["cached_tokens"], 0)


def share_of(stats):
    return {"blocks": stats["blocks"], "bytes": stats["bytes"]}


if __name__ == "__main__":
    unittest.main()

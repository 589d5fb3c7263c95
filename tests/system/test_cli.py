"""The command line against a node: what it prints, how it exits."""

import json
import os
import pathlib
import pty
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from harness import GODWIT, MODEL, PATIENCE, ROOT, WithNode

GOLDEN = json.loads((ROOT / "tests" / "golden" / "smollm2.json").read_text())


def run(*words, given=b"", url=None):
    environment = {**os.environ, **({"GODWIT_URL": url} if url else {})}
    return subprocess.run([GODWIT, *map(str, words)], input=given, capture_output=True, timeout=PATIENCE, check=False,
                          env=environment)


class WithoutNode(unittest.TestCase):
    def test_tokenize_and_back_equal_the_golden_ids(self):
        for case in GOLDEN["tokenize"]:
            text = case["text"].encode()
            done = run("tokenize", "--model", MODEL, "--special", "--json", given=text)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout), case["ids"])
            back = run("tokenize", "--model", MODEL, "--decode", given=done.stdout)
            self.assertEqual(back.stdout, text)

    def test_render_equals_the_golden_chats(self):
        for case in GOLDEN["chat"]:
            done = run("render", "--model", MODEL, given=json.dumps(case["messages"]).encode())
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.decode(), case["text"])

    def test_model_info_names_shape_types_and_dispatch(self):
        info = json.loads(run("model", "info", MODEL, "--json").stdout)
        self.assertEqual(info["architecture"], "llama")
        self.assertEqual(info["context"], 8192)
        self.assertEqual(info["vocabulary"], 49152)
        self.assertTrue(any(entry["chosen"] for entry in info["ops"]))
        self.assertIn(b"reference", run("model", "info", MODEL).stdout)

    def test_bad_usage_exits_2_and_failures_exit_1(self):
        self.assertEqual(run().returncode, 2)
        self.assertEqual(run("dance").returncode, 2)
        self.assertEqual(run("session", "show").returncode, 2)
        self.assertEqual(run("nodes", "--url", "http://127.0.0.1:1").returncode, 1)
        self.assertEqual(run("nodes", "--url", "telnet://x").returncode, 1)
        self.assertEqual(run("tokenize", "--model", "/none.gguf").returncode, 1)
        self.assertEqual(run("--help").returncode, 0)

    def test_a_node_that_is_not_there_is_told_in_a_sentence(self):
        with socket.socket() as bound:
            # Bound and not listening: nobody else takes the port meanwhile.
            bound.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{bound.getsockname()[1]}"
            done = run("nodes", "--url", url)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(f"no connection to {url}; is a node running there?", done.stderr.decode())

    def test_a_node_that_hangs_up_is_told_in_a_sentence(self):
        def hang_up():
            with server.accept()[0] as connection:
                connection.recv(65536)

        with socket.create_server(("127.0.0.1", 0)) as server:
            hangs_up = threading.Thread(target=hang_up, daemon=True)
            hangs_up.start()
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            done = run("nodes", "--url", url)
            hangs_up.join(PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(f"{url} closed the connection", done.stderr.decode())

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            for words in (("model", "info", MODEL), ("model", "info", MODEL, "--json")):
                done = subprocess.run([GODWIT, *map(str, words)], stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE,
                                      check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"could not be written", done.stderr)

    def test_a_word_that_is_no_command_is_named(self):
        for words in (("dance",), ("--dance",), ("session", "dance"), ("chat", "--dance")):
            done = run(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"dance", done.stderr)

    def test_a_terminal_gets_no_control_characters_of_a_model_file(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "odd.gguf"
            whole = MODEL.read_bytes()
            name = b"Smollm2 135M"
            self.assertIn(name, whole[:4096])
            model.write_bytes(whole.replace(name, b"\x1b[2J\x07" + name[5:], 1))
            shown = run("model", "info", model)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertIn(b"\\x1b[2J\\x07", shown.stdout)
            self.assertNotIn(b"\x1b", shown.stdout)

    def test_bench_nll_equals_the_golden_value_nearly(self):
        case = GOLDEN["nll"][0]
        path = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"godwit-nll-{os.getpid()}.txt"
        path.write_text(case["text"])
        try:
            done = run("bench", "nll", "--model", MODEL, "--text", path, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)
            self.assertAlmostEqual(result["mean_nll"], case["mean_nll"], delta=0.02)
        finally:
            path.unlink()


    def test_bench_journal_compares_the_journal_with_a_plain_file(self):
        with tempfile.TemporaryDirectory() as folder:
            words = ("bench", "journal", "--folder", folder, "--sessions", "1,32", "--rounds", "3", "--milliseconds", "100")
            done = run(*words, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            one, many = json.loads(done.stdout)
            self.assertEqual((one["sessions"], many["sessions"], many["record_bytes"]), (1, 32, 200))
            for side in (one["journal"], one["raw"], many["journal"], many["raw"]):
                self.assertGreater(side["records_per_s"], 0)
                self.assertLessEqual(side["p50_ms"], side["p99_ms"])
            self.assertEqual(one["raw"]["records_per_sync"], 1)
            # One session waits for each of its syncs; many share them.
            self.assertLessEqual(one["journal"]["records_per_sync"], 1)
            self.assertGreater(many["journal"]["records_per_sync"], 1)
            self.assertAlmostEqual(many["ratio"], many["journal"]["records_per_s"] / many["raw"]["records_per_s"], places=6)
            self.assertEqual(os.listdir(folder), [])
            self.assertEqual(run(*words).stdout.decode().splitlines()[0].split()[0], "SESSIONS")
            self.assertEqual(run("bench", "journal", "--folder", folder + "/none").returncode, 2)
            self.assertEqual(run("bench", "journal", "--folder", folder, "--sessions", "0").returncode, 2)


class AgainstANode(WithNode):
    def cli(self, *words, given=b""):
        return run(*words, given=given, url=f"http://127.0.0.1:{self.node.port}")

    def test_a_session_from_create_to_delete(self):
        created = self.cli("session", "create", "--temperature", "0", "--max-tokens", "24")
        self.assertEqual(created.returncode, 0, created.stderr)
        session = created.stdout.decode().strip()
        sent = self.cli("session", "send", session, "What colour is the sky on a clear day?")
        self.assertTrue(sent.stdout.startswith(b"The sky on a clear day is"), sent.stdout)
        events = self.cli("session", "events", session, "--json").stdout.decode().splitlines()
        self.assertEqual(json.loads(events[-1])["event"], "turn.completed")
        ids = [json.loads(event)["id"] for event in events]
        for index in (0, len(ids) // 2, -2, -1):
            rest = self.cli("session", "events", session, "--json", "--after", ids[index])
            self.assertEqual(rest.returncode, 0, rest.stderr)
            self.assertEqual(rest.stdout.decode().splitlines(), events[index % len(ids) + 1:])
        future = self.cli("session", "events", session, "--after", str(int(ids[-1]) + 10**6))
        self.assertEqual((future.returncode, future.stdout), (1, b""))
        self.assertIn(b"The sky on a clear day", self.cli("session", "transcript", session).stdout)
        self.assertEqual(json.loads(self.cli("session", "show", session, "--json").stdout)["turns"], 1)
        self.assertIn(session.encode(), self.cli("session", "list").stdout)
        pinned = self.cli("session", "pin", session, "--ttl", "60", "--json")
        self.assertEqual(pinned.returncode, 0, pinned.stderr)
        self.assertGreater(json.loads(pinned.stdout)["pinned_tokens"], 0)
        self.assertEqual(self.cli("session", "unpin", session).returncode, 0)
        self.assertIn(b"ttl_seconds", self.cli("session", "pin", session, "--ttl", "90000").stderr)
        fork = self.cli("session", "fork", session).stdout.decode().strip()
        self.assertTrue(fork.startswith("ses_"))
        self.assertEqual(self.cli("session", "delete", session).returncode, 0)
        gone = self.cli("session", "show", session)
        self.assertEqual(gone.returncode, 1)
        self.assertTrue(gone.stderr)

    def test_events_are_those_that_there_are_unless_more_are_to_be_followed(self):
        session = self.node.session(sampling={"temperature": 0.8, "seed": 3, "max_tokens": 400})
        empty = self.cli("session", "events", session)
        self.assertEqual((empty.returncode, empty.stdout), (0, b""))
        self.assertEqual(self.cli("session", "send", session, "Write a long story.", "--no-wait").returncode, 0)
        while_running = self.cli("session", "events", session, "--json").stdout.decode().splitlines()
        self.assertEqual(self.node.call("GET", f"/v1/sessions/{session}").json["status"], "running")
        self.assertTrue(while_running)
        follower = subprocess.Popen([GODWIT, "--url", f"http://127.0.0.1:{self.node.port}", "session", "events", session,
                                     "--follow", "--json"], stdout=subprocess.PIPE)
        try:
            self.node.call("POST", f"/v1/sessions/{session}/cancel", {})
            seen = []
            for line in follower.stdout:
                seen.append(line.decode().rstrip("\n"))
                if json.loads(line)["event"] == "turn.cancelled":
                    break
            self.assertEqual(seen[: len(while_running)], while_running)
            self.assertIsNone(follower.poll())
        finally:
            follower.kill()
            follower.wait()
            follower.stdout.close()

    def test_nodes_and_actors_are_listed(self):
        self.assertIn(b"ready", self.cli("nodes").stdout)
        names = [actor["name"] for actor in json.loads(self.cli("actors", "--json").stdout)["data"]]
        for name in ("tokenizer", "prefill", "decode", "device", "cache", "router", "directory"):
            self.assertTrue(any(name in known for known in names), (name, names))

    def test_the_letters_of_an_actor_are_shown(self):
        for actor in ("tokenizer", "prefill", "decode", "device", "cache", "router", "directory"):
            seen = []
            deadline = time.monotonic() + PATIENCE
            # What an actor sends, and what it tells itself now and then, is shown too.
            while ("request", "status", "node") not in seen:
                self.assertLess(time.monotonic(), deadline, (actor, seen))
                # Whoever lists the actors asks each of them how it is.
                listing = threading.Timer(0.3, lambda: self.cli("actors"))
                listing.start()
                traced = self.cli("actors", "trace", actor, "--letters", "1", "--seconds", "20", "--json")
                listing.join()
                self.assertEqual(traced.returncode, 0, (actor, traced.stderr))
                letters = json.loads(traced.stdout)["letters"]
                self.assertEqual(len(letters), 1)
                seen += [(letter["kind"], letter["types"], letter.get("from")) for letter in letters]
        self.assertEqual(self.cli("actors", "trace", "nobody").returncode, 1)
        self.assertEqual(self.cli("actors", "trace", "ses_" + 32 * "0").returncode, 1)
        self.assertEqual(self.cli("actors", "trace", "router", "--letters", "0").returncode, 1)

    def test_the_letters_of_a_session_are_shown_in_both_directions(self):
        session = self.cli("session", "create", "--temperature", "0", "--max-tokens", "8").stdout.decode().strip()
        seen = set()
        deadline = time.monotonic() + PATIENCE
        # A turn's words come from the device's actors, and go to whoever follows it.
        while not {("from", "TokenBatch"), ("to", "GenerateRequest")} <= {(way, types.split()[0]) for way, types in seen}:
            self.assertLess(time.monotonic(), deadline, seen)
            sending = threading.Timer(0.3, lambda: self.cli("session", "send", session, "Name a colour."))
            sending.start()
            traced = self.cli("actors", "trace", session, "--letters", "1000", "--seconds", "2", "--json")
            sending.join()
            self.assertEqual(traced.returncode, 0, traced.stderr)
            answer = json.loads(traced.stdout)
            self.assertEqual(answer["actor"], session)
            for letter in answer["letters"]:
                self.assertEqual(("from" in letter) + ("to" in letter), 1, letter)
                self.assertNotIn("colour", json.dumps(letter))
                seen.add(("to" if "to" in letter else "from", letter["types"] or "nothing"))

    def test_chat_reads_lines_from_a_pipe(self):
        done = self.cli("chat", "--temperature", "0", "--max-tokens", "24", given=b"What colour is the sky on a clear day?\n/session\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"The sky on a clear day is", done.stdout)
        self.assertIn(b"ses_", done.stdout)

    def test_chat_of_a_script_tells_a_failure_by_its_exit(self):
        done = self.cli("chat", "--max-tokens", "4", given=b"word " * 20000 + b"\nHello\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"context", done.stderr)
        self.assertTrue(done.stdout.strip())

    def test_numbers_that_json_cannot_say_are_refused(self):
        for flag in ("--temperature", "--top-p", "--min-p", "--repeat-penalty"):
            for number in ("nan", "inf", "-inf"):
                done = self.cli("session", "create", f"{flag}={number}")
                self.assertEqual((done.returncode, done.stdout), (1, b""))
                self.assertIn(flag.encode(), done.stderr)

    def test_ctrl_c_twice_leaves_a_node_that_hangs(self):
        chat = subprocess.Popen([GODWIT, "--url", f"http://127.0.0.1:{self.node.port}", "chat", "--max-tokens", "2000"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                env={**os.environ, "HOME": str(self.node.data)}, start_new_session=True)
        try:
            chat.stdin.write(b"Write a very long story about the sea.\n")
            chat.stdin.flush()
            self.assertNotEqual(chat.stdout.read(1), b"")
            self.node.process.send_signal(signal.SIGSTOP)
            for _ in range(2):
                chat.send_signal(signal.SIGINT)
                time.sleep(0.5)
            self.assertEqual(chat.wait(timeout=PATIENCE), 130)
        finally:
            self.node.process.send_signal(signal.SIGCONT)
            if chat.poll() is None:
                chat.kill()
                chat.wait()
            chat.stdin.close()
            chat.stdout.close()

    def test_ctrl_c_cancels_the_turn_and_not_the_program(self):
        leader, follower = pty.openpty()
        chat = subprocess.Popen([GODWIT, "--url", f"http://127.0.0.1:{self.node.port}", "chat", "--seed", "1",
                                 "--max-tokens", "2000"], stdin=follower, stdout=follower, stderr=follower,
                                env={**os.environ, "TERM": "dumb", "HOME": str(self.node.data)}, start_new_session=True)
        os.close(follower)
        seen = b""

        def wait_for(text):
            nonlocal seen
            deadline = time.monotonic() + PATIENCE
            while text not in seen:
                self.assertLess(time.monotonic(), deadline, seen)
                seen += os.read(leader, 65536)

        try:
            wait_for(b"> ")
            seen = b""
            os.write(leader, b"Write a very long story about the sea.\n")
            wait_for(b"sea.")
            length = len(seen)
            while len(seen) < length + 60:
                seen += os.read(leader, 65536)
            chat.send_signal(signal.SIGINT)
            wait_for(b"[cancelled]")
            seen = b""
            os.write(leader, b"/session\n")
            wait_for(b"ses_")
            os.write(leader, b"/quit\n")
            self.assertEqual(chat.wait(timeout=PATIENCE), 0)
        finally:
            if chat.poll() is None:
                chat.kill()
                chat.wait()
            os.close(leader)


if __name__ == "__main__":
    unittest.main()

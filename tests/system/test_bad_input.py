"""Bad requests, bad clients, bad files: each gets its stated error, and the node goes on serving."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from harness import GODWITD, MODEL, PATIENCE, Node, WithNode

URL = "/v1/chat/completions"
HI = [{"role": "user", "content": "Hi"}]


class BadRequests(WithNode):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.node.call("GET", "/v1/models").json["data"][0]["id"]

    def tearDown(self):
        self.assert_alive()

    def refuse(self, status, param=None, code=None, headers=None, **changes):
        body = {"model": self.model, "messages": HI, "max_tokens": 4, **changes}
        body = {key: value for key, value in body.items() if value is not None}
        self.assert_error(self.node.call("POST", URL, body, headers), status, code, param)

    def refuse_bytes(self, status, body, headers=None):
        self.assert_error(self.node.call("POST", URL, body, headers), status)

    def test_routes_and_methods(self):
        self.assert_error(self.node.call("GET", "/v2/nothing"), 404)
        answer = self.node.call("DELETE", URL)
        self.assert_error(answer, 405)
        self.assertIn("POST", answer.headers["Allow"])
        self.assert_error(self.node.call("PUT", "/v1/sessions"), 405)

    def test_content_types(self):
        body = json.dumps({"model": self.model, "messages": HI}).encode()
        self.refuse_bytes(415, body, {"Content-Type": "text/plain"})
        self.refuse_bytes(415, body, {"Content-Type": "application/x-www-form-urlencoded"})
        ok = self.node.call("POST", URL, {"model": self.model, "messages": HI, "max_tokens": 1},
                            {"Content-Type": "application/json; charset=utf-8"})
        self.assertEqual(ok.status, 200)

    def test_malformed_json(self):
        for body in (b"", b"{", b"[]", b"null", b'"x"', b'{"model":}', b"{'a':1}", b'{"a":1}x', b'{"temperature":NaN}',
                     b'{"a":1e999999}', b"\xff\xfe", b'{"messages":"\xc3\x28"}', b"\x00"):
            with self.subTest(body=body):
                self.refuse_bytes(400, body)

    def test_deep_json(self):
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            deep = opening * 1000 + b"1" + closing * 1000
            self.refuse_bytes(400, deep)
            self.refuse_bytes(400, b'{"model":"m","messages":' + deep + b"}")
        self.refuse_bytes(400, b"[" * 2_000_000)

    def test_a_body_of_33_megabytes(self):
        body = b'{"model":"' + b"x" * (33 << 20) + b'"}'
        try:
            self.assert_error(self.node.call("POST", URL, body), 413)
        except (ConnectionResetError, BrokenPipeError):
            # The answer may be lost when the node closes before all was sent; it must be there for a client that asks first.
            pass
        with self.node.raw() as raw:
            raw.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                        b"Content-Length: 34603008\r\n\r\n")
            self.assertIn(b" 413 ", raw.recv(4096).split(b"\r\n")[0])

    def test_parameters_out_of_range_are_named(self):
        self.refuse(404, code="model_not_found", model="no-such-model")
        self.refuse(400, "messages", messages=[])
        self.refuse(400, "messages[0].role", messages=[{"role": "wizard", "content": "x"}])
        self.refuse(400, "messages[0].content", messages=[{"role": "user", "content": 3}])
        self.refuse(400, "max_tokens", max_tokens=0)
        self.refuse(400, "max_tokens", max_tokens=-3)
        self.refuse(400, "max_completion_tokens", max_tokens=None, max_completion_tokens=0)
        self.refuse(400, "temperature", temperature=-1)
        self.refuse(400, "temperature", temperature="hot")
        self.refuse(400, "top_p", top_p=0)
        self.refuse(400, "top_p", top_p=1.5)
        self.refuse(400, "n", n=1000)
        self.refuse(400, "n", n=0)
        self.refuse(400, "stop", stop=[str(number) for number in range(100)])
        self.refuse(400, "top_logprobs", logprobs=True, top_logprobs=99)
        self.refuse(400, "presence_penalty", presence_penalty=3)
        self.refuse(400, "frequency_penalty", frequency_penalty=-3)
        self.refuse(400, "seed", seed="x")
        self.refuse(400, "stream", stream="yes")

    def test_numbers_that_are_none_are_refused(self):
        # JSON has no word for them; what other languages write is malformed, and what does not fit is out of range.
        for literal, param in ((b"NaN", None), (b"-NaN", None), (b"nan", None), (b"Infinity", None), (b"1e400", None),
                               (b"1e39", "temperature"), (b"-1e39", "temperature"), (b'"NaN"', "temperature"),
                               (b"true", "temperature"), (b"[1]", "temperature")):
            body = json.dumps({"model": self.model, "messages": HI}).encode()[:-1] + b', "temperature": ' + literal + b"}"
            with self.subTest(literal=literal):
                self.assert_error(self.node.call("POST", URL, body), 400, param=param)
                session = b'{"sampling": {"temperature": ' + literal + b"}}"
                self.assert_error(self.node.call("POST", "/v1/sessions", session), 400, param=param and "sampling." + param)
        for name in ("n", "max_tokens", "top_logprobs", "seed"):
            for value in (1.5, 1e30, -(2**63) - 1, 2**64, 10**30):
                with self.subTest(name=name, value=value):
                    self.refuse(400, name, **{"max_tokens": None, "logprobs": True, name: value})

    def test_every_method_on_every_route_is_answered(self):
        session = self.node.session()
        routes = ("/v1/chat/completions", "/v1/models", f"/v1/models/{self.model}", "/v1/sessions", f"/v1/sessions/{session}",
                  *(f"/v1/sessions/{session}/{rest}" for rest in ("messages", "events", "transcript", "cancel", "fork",
                                                                  "suspend", "pin", "migrate")),
                  "/healthz", "/readyz", "/metrics", "/v1/nodes", "/v1/actors")
        for route in routes:
            for method in ("PATCH", "PUT", "OPTIONS", "TRACE"):
                with self.subTest(route=route, method=method):
                    answer = self.node.call(method, route)
                    self.assert_error(answer, 405)
                    self.assertTrue(answer.headers["Allow"])
            self.assert_error(self.node.call("BREW", route), 501)
        for route in ("/", "/v1", "/v1/", "/v1/session", f"/v1/sessions/{session}/nothing", "/healthz/x", "//v1/models",
                      "/v1/models/", "/v1/../v1/models", "/v1/models/%2e%2e"):
            with self.subTest(route=route):
                self.assert_error(self.node.call("GET", route), 404)
        self.assert_error(self.node.call("GET", "/%00"), 400)

    def test_parameters_that_are_not_there_yet_are_named(self):
        self.refuse(400, "tools", tools=[{"type": "function", "function": {"name": "f"}}])
        self.refuse(400, "tool_choice", tool_choice="auto")
        self.refuse(400, "response_format", response_format={"type": "json_object"})
        self.refuse(400, "no_such_parameter", no_such_parameter=1)

    def test_a_prompt_over_the_context_tells_both_numbers(self):
        long = "word " * 9000
        answer = self.node.call("POST", URL, {"model": self.model, "messages": [{"role": "user", "content": long}]})
        self.assert_error(answer, 400, "context_length_exceeded")
        self.assertIn("8192", answer.json["error"]["message"].replace(",", ""))
        self.assertRegex(answer.json["error"]["message"].replace(",", ""), r"9\d\d\d")
        session = self.node.session()
        answer = self.node.call("POST", f"/v1/sessions/{session}/messages", {"content": long})
        self.assert_error(answer, 400, "context_length_exceeded")
        self.assertNotIn("word word", answer.body.decode())

    def test_sessions_refuse_what_they_do_not_know(self):
        for body, param in (({"sampling": {"temperature": -1}}, "sampling.temperature"),
                            ({"sampling": {"max_tokens": 0}}, "sampling.max_tokens"),
                            ({"sampling": {"sweetness": 1}}, "sampling.sweetness"),
                            ({"ttl_s": -1}, "ttl_s"), ({"on_busy": "wait"}, "on_busy"), ({"metadata": 3}, "metadata"),
                            ({"tools": [{"name": "f"}]}, "tools"), ({"colour": 1}, "colour")):
            with self.subTest(body=body):
                self.assert_error(self.node.call("POST", "/v1/sessions", body), 400, param=param)
        session = self.node.session()
        for body, param in (({}, "content"), ({"content": 3}, "content"), ({"content": "x", "stream": 3}, "stream"),
                            ({"content": "x", "on_disconnect": "explode"}, "on_disconnect")):
            with self.subTest(body=body):
                self.assert_error(self.node.call("POST", f"/v1/sessions/{session}/messages", body), 400, param=param)
        self.assert_error(self.node.call("GET", "/v1/sessions?limit=0"), 400, param="limit")
        self.assert_error(self.node.call("GET", "/v1/sessions?limit=x"), 400, param="limit")

    def test_tenants_with_odd_names_are_refused(self):
        for tenant in ("", "x" * 300, "a b", "ä"):
            with self.subTest(tenant=tenant):
                self.assert_error(self.node.call("GET", "/v1/sessions", headers={"X-Tenant-ID": tenant.encode()}), 400)

    def test_what_stands_twice_is_refused(self):
        for field in (b"X-Tenant-ID", b"Last-Event-ID"):
            with self.node.raw() as raw:
                raw.sendall(b"GET /v1/sessions/ses_" + b"0" * 32 + b"/events HTTP/1.1\r\nHost: x\r\n"
                            + 2 * (field + b": a\r\n") + b"Connection: close\r\n\r\n")
                answer = raw.makefile("rb").read()
                self.assertIn(b" 400 ", answer.split(b"\r\n")[0])
                self.assertIn(field, answer)
        self.assert_error(self.node.call("GET", "/v1/sessions?limit=1&limit=2"), 400, param="limit")

    def test_garbage_on_the_socket(self):
        for garbage in (b"\x00" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00" * 50,
                        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
                        b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
                        b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n"):
            with self.subTest(garbage=garbage[:30]), self.node.raw() as raw:
                raw.settimeout(PATIENCE)
                try:
                    raw.sendall(garbage)
                    raw.shutdown(socket.SHUT_WR)
                    first = raw.recv(65536)
                except ConnectionError:
                    continue
                if first:
                    self.assertRegex(first.split(b"\r\n")[0], rb"^HTTP/1\.[01] (4|5)\d\d ")

    def test_prompt_text_never_shows_in_an_error(self):
        secret = "SECRET-PHRASE"
        answer = self.node.call("POST", URL, {"model": self.model, "messages": [{"role": secret, "content": secret}]})
        self.assertNotIn(secret, answer.body.decode())


class BadClients(WithNode):
    config = "header_timeout_s = 3\nbody_timeout_s = 3\n"

    def tearDown(self):
        self.assert_alive()

    def test_one_byte_a_second_in_the_head_is_cut_off(self):
        with self.node.raw() as raw:
            started = time.monotonic()
            with self.assertRaises((ConnectionError, AssertionError)):
                for byte in b"GET /healthz HTTP/1.1\r\nHost: somewhere\r\n":
                    raw.sendall(bytes([byte]))
                    raw.settimeout(1)
                    try:
                        answer = raw.recv(4096)
                        self.assertTrue(not answer or b" 408 " in answer)
                        raise ConnectionError("cut off, as it should be")
                    except TimeoutError:
                        self.assertLess(time.monotonic() - started, 15, "still connected")
            self.assertLess(time.monotonic() - started, 15)

    def test_one_byte_a_second_in_the_body_is_cut_off(self):
        body = json.dumps({"messages": HI}).encode()
        with self.node.raw() as raw:
            raw.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(body))
            started = time.monotonic()
            raw.settimeout(1)
            answer = None
            for byte in body:
                try:
                    raw.sendall(bytes([byte]))
                    answer = raw.recv(4096)
                    break
                except TimeoutError:
                    self.assertLess(time.monotonic() - started, 15, "still connected")
                except ConnectionError:
                    answer = b""
                    break
            self.assertIsNotNone(answer, "the whole body was waited for")
            self.assertTrue(not answer or b" 408 " in answer, answer)

    def test_a_client_that_reads_a_byte_a_second_of_a_sessions_events_stops_nobody(self):
        session = self.node.session(sampling={"temperature": 1, "seed": 1, "max_tokens": 300, "logit_bias": {"2": -100}})
        body = b'{"content": "Hi", "stream": true}'
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", self.node.port))
            slow.sendall(b"POST /v1/sessions/%s/messages HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                         b"Content-Length: %d\r\n\r\n%s" % (session.encode(), len(body), body))
            for _ in range(3):
                self.assertTrue(slow.recv(1))
                time.sleep(1)
            # The turn does not wait for its slow reader, and others read it at their own pace.
            self.assertEqual(self.node.events(session)[-1].type, "turn.completed")

    def test_a_slow_reader_costs_little_memory_and_stops_nobody(self):
        model = self.node.call("GET", "/v1/models").json["data"][0]["id"]
        body = json.dumps({"model": model, "messages": HI, "stream": True, "temperature": 1, "seed": 1, "max_tokens": 2000,
                           "logit_bias": {"2": -100}, "n": 4}).encode()
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", self.node.port))
            slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                         b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            before = self.node.metric("process_resident_memory_bytes")
            for _ in range(6):
                self.assertTrue(slow.recv(1))
                time.sleep(1)
            answer = self.node.call("POST", URL, {"model": model, "messages": HI, "max_tokens": 4})
            self.assertEqual(answer.status, 200)
            self.assertLess(self.node.metric("process_resident_memory_bytes") - before, 200e6)
        self.wait_for_idle()

    def test_a_client_that_leaves_frees_its_work(self):
        model = self.node.call("GET", "/v1/models").json["data"][0]["id"]
        for _ in range(5):
            stream = self.node.stream("POST", URL, {"model": model, "messages": HI, "stream": True, "max_tokens": 4000,
                                                    "temperature": 1, "logit_bias": {"2": -100}})
            for _ in range(3):
                stream.next()
            stream.response.close()
            stream.close()
        self.wait_for_idle()

    def test_a_client_that_leaves_is_not_the_nodes_failure(self):
        body = json.dumps({"model": self.node.call("GET", "/v1/models").json["data"][0]["id"], "max_tokens": 2000,
                           "logit_bias": {"2": -100}, "messages": [{"role": "user", "content": "Hello"}]}).encode()
        with self.node.raw() as raw:
            raw.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(body) + body)
            deadline = time.monotonic() + PATIENCE
            while self.node.metric("godwit_open_streams") == 0 and time.monotonic() < deadline:
                time.sleep(0.02)
            raw.shutdown(socket.SHUT_WR)
            self.assertIn(b" 499 ", raw.makefile("rb").read().split(b"\r\n")[0])
        self.wait_for_idle()
        metrics = self.node.call("GET", "/metrics").body.decode()
        answers = [line for line in metrics.splitlines() if line.startswith("godwit_http_requests_total")]
        self.assertTrue(any('status="499"' in line for line in answers), answers)
        self.assertFalse(any('status="5' in line or 'status="0"' in line for line in answers), answers)

    def wait_for_idle(self):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if self.node.metric("godwit_running_sequences") == 0:
                return
            time.sleep(0.05)
        self.fail("sequences still run though their clients have left")

    def test_many_connections_at_once(self):
        sockets = [self.node.raw() for _ in range(200)]
        try:
            results = []
            threads = [threading.Thread(target=lambda: results.append(self.node.call("GET", "/healthz").status))
                       for _ in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(results, [200] * 20)
        finally:
            for one in sockets:
                one.close()


class FewDescriptors(unittest.TestCase):
    def test_a_node_with_few_descriptors_refuses_connections_and_does_not_hang(self):
        class Narrow(Node):
            def command(self):
                return ["prlimit", "--nofile=128:128", *super().command()]

        node = Narrow()
        idle = []
        try:
            self.assertTrue(any("limit of open files" in line for line in node.log), node.log)
            for _ in range(100):
                idle.append(node.raw())
            refused = node.raw()
            idle.append(refused)
            refused.settimeout(PATIENCE)
            refused.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertTrue(refused.recv(64).startswith(b"HTTP/1.1 503 "))
            for connection in idle:
                connection.close()
            deadline = time.monotonic() + PATIENCE
            while node.call("GET", "/healthz").status != 200:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
        finally:
            node.close()


class BadStarts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="godwit-system-"))

    def tearDown(self):
        subprocess.run(["chmod", "-R", "u+w", self.folder], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *flags, environment=None):
        done = subprocess.run([GODWITD, *map(str, flags)], capture_output=True, text=True, timeout=PATIENCE, check=False,
                              env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL)
        self.assertNotIn("ready on", done.stdout)
        return done.returncode, done.stderr

    def refuse(self, *flags, says=(), code=1):
        exit_code, text = self.start(*flags)
        self.assertEqual(exit_code, code, text)
        self.assertTrue(text.strip(), "nothing was said")
        self.assertNotRegex(text, "Sanitizer|terminate called|broken invariant")
        for word in says:
            self.assertIn(word, text)

    def flags(self, model=MODEL, data=None):
        return "--model", model, "--data", data or self.folder / "data", "--listen", "127.0.0.1:0"

    def test_bad_flags(self):
        self.refuse("--no-such-flag", code=2)
        self.refuse(*self.flags(), "--threads", "many", code=2)
        self.refuse(*self.flags()[:-1], "nowhere", code=2)

    def test_a_missing_model(self):
        self.refuse(*self.flags(model=self.folder / "none.gguf"), says=["none.gguf"])

    def test_a_model_that_is_cut_or_lies(self):
        whole = MODEL.read_bytes()
        path = self.folder / "cut.gguf"
        for length in (0, 3, 8, 24, 1000, 2_000_000, len(whole) - 1):
            path.write_bytes(whole[:length])
            with self.subTest(length=length):
                self.refuse(*self.flags(model=path))
        path.write_bytes(whole[:8] + b"\xff" * 8 + whole[16:])
        self.refuse(*self.flags(model=path))

    def test_a_model_cut_at_any_place_is_refused(self):
        # From the longest to the shortest, so that one file is enough: in its head, its metadata, and its tensors.
        path = self.folder / "cut.gguf"
        shutil.copyfile(MODEL, path)
        whole = MODEL.stat().st_size
        count = int(os.environ.get("GODWIT_TEST_CUTS", "40"))
        places = {1, 4, 7, 12, 23, 25, whole - 1, whole - 32, *(1700 * 1024 * step // count for step in range(count // 2)),
                  *(whole * step // count for step in range(count // 2, count))}
        for length in sorted(places, reverse=True):
            os.truncate(path, length)
            with self.subTest(length=length):
                self.refuse(*self.flags(model=path), says=["cut.gguf"])

    def test_a_model_with_absurd_counts_is_refused(self):
        whole = MODEL.read_bytes()
        path = self.folder / "lies.gguf"
        # Version, tensors, keys: bytes 4 to 8, 8 to 16, 16 to 24.
        for begin, end in ((4, 8), (8, 16), (16, 24)):
            for value in (b"\xff" * 8, b"\x00" * 7 + b"\x80", b"\x00\x00\x00\x00\x01\x00\x00\x00"):
                path.write_bytes(whole[:begin] + value[:end - begin] + whole[end:])
                with self.subTest(begin=begin, value=value):
                    self.refuse(*self.flags(model=path), says=["lies.gguf"])

    def test_a_data_directory_in_use(self):
        node = Node(data=self.folder / "data")
        try:
            self.refuse(*self.flags(), says=["in use"])
            self.assertEqual(node.call("GET", "/healthz").status, 200)
        finally:
            node.stop()

    def test_a_data_directory_that_is_a_file(self):
        (self.folder / "data").write_text("x")
        self.refuse(*self.flags())

    def test_a_journal_damaged_before_its_end_is_refused_and_cut_only_when_asked(self):
        node = Node(data=self.folder / "data")
        try:
            first = node.session(metadata={"name": "first"})
            rest = [node.session(metadata={"name": "x" * 2000}) for _ in range(40)]
        finally:
            node.stop(kill=True)
        log = max((self.folder / "data" / "journal").glob("*.log"), key=lambda path: path.stat().st_size)
        damaged = bytearray(log.read_bytes())
        damaged[len(damaged) // 2] ^= 0x10
        log.write_bytes(damaged)

        self.refuse(*self.flags(), says=["journal is damaged", "journal_damaged_log"])
        self.assertEqual(log.read_bytes(), damaged, "a refused start changes nothing")
        self.refuse(*self.flags(), "--journal-damaged-log", "perhaps", code=2, says=["refuse or cut"])

        node = Node("--journal-damaged-log", "cut", data=self.folder / "data")
        try:
            self.assertEqual(node.call("GET", f"/v1/sessions/{first}").json["metadata"], {"name": "first"})
            self.assertEqual(node.call("GET", f"/v1/sessions/{rest[-1]}").status, 404)
            self.assertTrue(node.say(node.session(sampling={"max_tokens": 2}), "Hi"))
        finally:
            node.close()
        # What is left is whole.
        node = Node(data=self.folder / "data")
        try:
            self.assertEqual(node.call("GET", f"/v1/sessions/{first}").status, 200)
        finally:
            node.close()

    @unittest.skipUnless(pathlib.Path("/proc/self/ns/user").exists(), "needs a read-only mount")
    def test_a_read_only_data_directory(self):
        data = self.folder / "data"
        data.mkdir()
        # Root writes through permissions: a read-only bind mount in a mount namespace of its own refuses root too.
        script = f"mount --bind {data} {data} && mount -o remount,ro,bind {data} && exec \"$@\""
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", GODWITD, *map(str, self.flags())],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("read-only", done.stderr.lower())

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refuse(*self.flags()[:-1], f"127.0.0.1:{port}", says=[str(port)])


if __name__ == "__main__":
    unittest.main()

"""What the system tests share: a node as a real process on loopback, and a client that sees bytes, not a library's view of them."""

import contextlib
import http.client
import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

GODWITD = os.environ["GODWIT_TEST_GODWITD"]
GODWIT = os.environ["GODWIT_TEST_GODWIT"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = pathlib.Path(os.environ.get("GODWIT_TEST_MODEL", ROOT / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"))
# Sanitizers and a busy machine make a node slow; a healthy run needs a small part of this.
PATIENCE = float(os.environ.get("GODWIT_TEST_PATIENCE", "60"))


class Answer:
    """One HTTP answer, read to its end."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


class Event:
    """One server-sent event, with the bytes it was made of."""

    def __init__(self, identity, kind, data):
        self.id = identity
        self.type = kind
        self.data = data

    @property
    def json(self):
        return json.loads(self.data)

    def __eq__(self, other):
        return (self.id, self.type, self.data) == (other.id, other.type, other.data)

    def __repr__(self):
        return f"Event({self.id}, {self.type}, {self.data})"


def parse_events(stream):
    """Events from a file of bytes, as they come. Comments are skipped; an event cut at its end is not yielded."""
    identity, kind, data = "", "message", []
    while line := stream.readline():
        if not line.endswith(b"\n"):
            return
        line = line.rstrip(b"\r\n")
        if not line:
            if data:
                yield Event(identity, kind, "\n".join(data))
            kind, data = "message", []
        elif not line.startswith(b":"):
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ").decode()
            if name == b"id":
                identity = value
            elif name == b"event":
                kind = value
            elif name == b"data":
                data.append(value)


class Stream:
    """An open answer whose events arrive one after the other."""

    def __init__(self, connection, response):
        self.connection = connection
        self.status = response.status
        self.response = response
        self.events = parse_events(response) if response.status == 200 else iter(())

    def next(self):
        return next(self.events)

    def rest(self):
        return list(self.events)

    def until(self, *kinds):
        """Events up to and with the first of one of these types."""
        out = []
        for event in self.events:
            out.append(event)
            if event.type in kinds:
                return out
        raise AssertionError(f"the stream ended before any of {kinds}: {out[-3:]}")

    def close(self):
        self.connection.close()
        # An answer after which the node hangs up is no more the connection's.
        self.response.close()


ENDS = ("turn.completed", "turn.failed", "turn.cancelled")


class Node:
    """A godwitd process with a data directory of its own."""

    host = "127.0.0.1"
    prefix = ()  # what starts it elsewhere

    def __init__(self, *flags, data=None, model=MODEL, config=None, ready=True):
        self.own_data = data is None
        self.data = pathlib.Path(data or tempfile.mkdtemp(prefix="godwit-system-"))
        self.model = model
        self.flags = list(flags)
        self.config = config
        self.process = None
        self.port = None
        self.log = []
        if ready:
            self.start()

    def command(self):
        out = [*self.prefix, GODWITD, "--model", str(self.model), "--data", str(self.data), "--listen", self.host + ":0", *self.flags]
        if self.config is not None:
            path = self.data / "test-config.toml"
            path.write_text(self.config)
            out += ["--config", str(path)]
        return out

    def start(self):
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        lines = queue.Queue()

        def read(stream, name):
            for line in stream:
                self.log.append(line)
                if name == "out":
                    lines.put(line)
            lines.put(None)

        self.readers = [threading.Thread(target=read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, "out"), (self.process.stderr, "err"))]
        for reader in self.readers:
            reader.start()
        deadline = time.monotonic() + PATIENCE
        ended = 0
        while True:
            try:
                line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.stop(kill=True)
                raise AssertionError("the node was not ready in time:\n" + "".join(self.log[-20:]))
            # A process closes what it writes to a moment before it can be waited for.
            ended += line is None
            if ended == len(self.readers):
                self.process.wait(timeout=PATIENCE)
                raise AssertionError("the node ended:\n" + "".join(self.log[-20:]))
            if line and line.startswith("godwit: ready on http://"):
                self.port = int(line.split()[3].rsplit(":", 1)[1])
                return self

    def signal(self, which):
        self.process.send_signal(which)

    def stop(self, kill=False):
        """Ends the process, by SIGTERM unless told to kill; gives its exit code."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            code = self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the node did not end in time:\n" + "".join(self.log[-20:]))
        for reader in self.readers:
            reader.join(timeout=5)
        self.process.stdout.close()
        self.process.stderr.close()
        self.process = None
        return code

    def close(self):
        self.stop(kill=True)
        if self.own_data:
            shutil.rmtree(self.data, ignore_errors=True)

    def connect(self, timeout=None):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout or PATIENCE)

    def call(self, method, path, body=None, headers=None, timeout=None):
        """A request with a JSON body (or bytes, sent as they are) and its whole answer."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        with contextlib.closing(self.connect(timeout)) as connection:
            connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())

    def stream(self, method, path, body=None, headers=None, timeout=None):
        connection = self.connect(timeout)
        headers = {"Accept": "text/event-stream", **(headers or {})}
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = json.dumps(body).encode()
        try:
            connection.request(method, path, body=body, headers=headers)
            return Stream(connection, connection.getresponse())
        except BaseException:
            connection.close()
            raise

    def raw(self):
        """A bare socket to the node."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    # Shorthands of the sessions API.

    def session(self, headers=None, **settings):
        answer = self.call("POST", "/v1/sessions", settings, headers)
        assert answer.status == 201, answer.body
        return answer.json["id"]

    def say(self, session, content, key=None, **more):
        """Sends a message and gives all events of its turn."""
        headers = {"Idempotency-Key": key} if key else {}
        stream = self.stream("POST", f"/v1/sessions/{session}/messages", {"content": content, "stream": True, **more}, headers)
        assert stream.status == 200, stream.response.read()
        with contextlib.closing(stream):
            return stream.until(*ENDS)

    def events(self, session, count=None, after=None, until=ENDS, turns=1):
        """Events of a session from a place on, up to the end of so many turns or so many events."""
        path = f"/v1/sessions/{session}/events" + (f"?after={after}" if after else "")
        stream = self.stream("GET", path)
        assert stream.status == 200, stream.response.read()
        out = []
        with contextlib.closing(stream):
            for event in stream.events:
                out.append(event)
                turns -= event.type in until
                if (count and len(out) == count) or (not count and turns == 0):
                    return out
        raise AssertionError(f"the stream ended early: {out[-3:]}")

    def metric(self, name):
        """The sum of a metric over its labels."""
        total = 0.0
        for line in self.call("GET", "/metrics").body.decode().splitlines():
            if line.split("{")[0].split(" ")[0] == name:
                total += float(line.rsplit(" ", 1)[1])
        return total


def begin_turn(node, content, sampling, tokens=3):
    """A turn of a new session of which the first events have come."""
    session = node.session(sampling=sampling)
    stream = node.stream("POST", f"/v1/sessions/{session}/messages", {"content": content, "stream": True})
    seen = []
    while sum(event.type == "token" for event in seen) < tokens:
        seen.append(stream.next())
    return session, stream, seen


def rest_of_turn(stream, patience=PATIENCE):
    """Events up to the turn's end. A stream with heartbeats and nothing else never is silent for long, so that the client's
    time-out would not end the wait: this one has an end of its own."""
    rest = []
    reader = threading.Thread(target=lambda: rest.append(stream.until(*ENDS)), daemon=True)
    reader.start()
    reader.join(patience)
    assert rest, "the turn did not end in time"
    return rest[0]


def text_of(events):
    return "".join(event.json["text"] for event in events if event.type == "token")


def ids_of(events):
    return [token for event in events if event.type == "token" for token in event.json["tokens"]]


class WithNode(unittest.TestCase):
    """Tests that share one node."""

    flags = ()
    config = None

    @classmethod
    def setUpClass(cls):
        cls.node = Node(*cls.flags, config=cls.config)

    @classmethod
    def tearDownClass(cls):
        cls.node.close()

    def assert_alive(self):
        self.assertEqual(self.node.call("GET", "/healthz").status, 200)
        self.assertIsNone(self.node.process.poll())

    def assert_error(self, answer, status, code=None, param=None):
        self.assertEqual(answer.status, status, answer.body)
        problem = answer.json["error"]
        self.assertIn("type", problem)
        self.assertTrue(problem["message"])
        if code is not None:
            self.assertEqual(problem["code"], code)
        if param is not None:
            self.assertEqual(problem.get("param"), param)

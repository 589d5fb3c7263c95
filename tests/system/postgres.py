"""A PostgreSQL server for the system tests: on loopback at a free port, in a folder of its own, stopped by its process id."""

import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PROGRAMS = pathlib.Path("/usr/lib/postgresql/15/bin")


def as_server_user(command):
    """A command as the package's user: the server refuses to run as root."""
    program = PROGRAMS / command[0]
    assert program.exists(), f"{program} is missing: this test needs the package postgresql-15 (tools/packages test)"
    command = [str(program), *command[1:]]
    if os.geteuid() != 0:
        return command
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--pdeathsig", "QUIT", "--", *command]


class PortTaken(Exception):
    """The port is somebody else's."""


class Server:
    """An empty database of a superuser `godwit`. It does not sync, which is enough for processes that are killed."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="godwit-postgres-"))
        self.folder.chmod(0o711)
        self.data = self.folder / "data"
        self.data.mkdir(mode=0o700)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.data, user.pw_uid, user.pw_gid)
        self.port = None
        self.process = None
        subprocess.run(as_server_user(["initdb", f"--pgdata={self.data}", "--username=godwit", "--auth=trust", "--encoding=UTF8",
                                       "--locale=C", "--no-sync"]), check=True, cwd="/", stdout=subprocess.DEVNULL)
        for tried in range(5):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            try:
                self.start()
                break
            except PortTaken:
                # Somebody was faster.
                if tried == 4:
                    raise

    @property
    def url(self):
        return f"postgresql://godwit@127.0.0.1:{self.port}/postgres"

    def start(self):
        """On the main thread: a server dies with the thread that started it."""
        settings = ("listen_addresses=127.0.0.1", f"port={self.port}", "unix_socket_directories=", "fsync=off", "full_page_writes=off")
        options = [word for one in settings for word in ("-c", one)]
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(as_server_user(["postgres", "-D", str(self.data), *options]), cwd="/",
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        ready = [str(PROGRAMS / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode != 0:
            if self.process.poll() is not None:
                log = (self.folder / "server.log").read_text()
                raise PortTaken(log) if "could not bind" in log else AssertionError(log)
            assert time.monotonic() < deadline, "the PostgreSQL server did not start"
            time.sleep(0.05)

    def kill(self):
        """All of it at once."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.process.kill()
        for child in children:
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        time.sleep(0.2)

    def ask(self, sql):
        out = subprocess.run([str(PROGRAMS / "psql"), "-X", "-q", "-t", "-A", self.url, "-c", sql], check=True, capture_output=True,
                             text=True)
        return out.stdout.strip()

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

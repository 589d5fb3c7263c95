"""PostgreSQL servers of tools/dev-cluster: a primary and standbys that commits wait for, on loopback, in the cluster's folder.

They listen on 127.0.0.1 without passwords, for whoever is on this machine: they are for looking and testing only.
"""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import time

PROGRAMS = pathlib.Path("/usr/lib/postgresql/15/bin")
USER = "postgres"  # of the package; the server refuses to run as root
START_S = 60
SETTINGS = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "shared_buffers": "16MB", "max_connections": "60",
            "max_wal_senders": "8", "wal_sender_timeout": "2s", "wal_receiver_timeout": "2s",
            "wal_retrieve_retry_interval": "100ms", "wal_receiver_status_interval": "1s"}


class Trouble(Exception):
    """What whoever runs the cluster has to know."""


def as_server_user(command):
    program = PROGRAMS / command[0]
    if not program.exists():
        raise Trouble(f"{program} is not there: --postgres needs the package postgresql-15")
    command = [str(program), *command[1:]]
    if os.geteuid() != 0:
        return command
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", "--", *command]


def run(command, what):
    done = subprocess.run(as_server_user(command), cwd="/", capture_output=True, text=True)
    if done.returncode != 0:
        raise Trouble(f"{what}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}")
    return done.stdout.strip()


class Databases:
    """The servers db1, db2, … of a cluster. `state` is kept by the caller: {"primary": NAME, "servers": {NAME: {…}}}."""

    def __init__(self, folder, state, save):
        self.folder = folder
        self.state = state
        self.save = save

    @property
    def servers(self):
        return self.state.get("servers", {})

    @property
    def primary(self):
        return self.state["primary"]

    def url(self):
        hosts = ",".join(f"127.0.0.1:{one['port']}" for one in self.servers.values())
        return f"postgresql://godwit@{hosts}/postgres"

    def data(self, name):
        return self.folder / name / "data"

    # --- processes ---

    def pid(self, name):
        """Of the server's process; nothing if it has ended, or the number is another's by now."""
        pid = self.servers[name].get("pid")
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return None
        return pid if str(self.data(name)).encode() in words else None

    def process_state(self, name):
        pid = self.pid(name)
        if pid is None:
            return "not running"
        try:
            status = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return "not running"
        return {"T": "paused", "Z": "ended"}.get(status, "running")

    def wait_reaped(self, name, seconds=15):
        """PostgreSQL takes a process that has ended for alive as long as its parent, init by now, has not asked for its end."""
        stat = pathlib.Path(f"/proc/{self.servers[name].get('pid')}/stat")
        deadline = time.monotonic() + seconds
        try:
            while stat.read_text().rsplit(")", 1)[1].split()[0] == "Z" and time.monotonic() < deadline:
                time.sleep(0.05)
        except OSError:
            pass

    def signal(self, name, which):
        """To the server and its children, which are found by their parent."""
        pid = self.pid(name)
        if pid is None:
            raise Trouble(f"{name} is not running")
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(pid, which)
        for child in children:
            try:
                os.kill(int(child), which)
            except ProcessLookupError:
                pass

    def wait_end(self, name, seconds=30):
        deadline = time.monotonic() + seconds
        while self.process_state(name) not in ("not running", "ended"):
            if time.monotonic() > deadline:
                self.signal(name, signal.SIGKILL)
            time.sleep(0.05)

    # --- making them ---

    def make(self, standbys, first_port):
        self.state.clear()
        self.state["primary"] = "db1"
        self.state["servers"] = {f"db{i + 1}": {"port": first_port + i} for i in range(standbys + 1)}
        self.folder.mkdir(parents=True, exist_ok=True)
        data = self.fresh_folder("db1")
        run(["initdb", f"--pgdata={data}", "--username=godwit", "--auth=trust", "--encoding=UTF8", "--locale=C",
             "--no-sync"], "initdb")
        self.launch("db1")
        for name in self.servers:
            if name != "db1":
                self.follow(name)

    def fresh_folder(self, name):
        """An empty one that the server's user may use."""
        data = self.data(name)
        shutil.rmtree(data.parent, ignore_errors=True)
        data.mkdir(parents=True, mode=0o700)
        data.chmod(0o700)
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER)
            os.chown(data, user.pw_uid, user.pw_gid)
            for each in (data.parent, self.folder, self.folder.parent):
                each.chmod(each.stat().st_mode | 0o011)
            for each in self.folder.parents:
                if not each.stat().st_mode & 0o001:
                    raise Trouble(f"{each} is closed to the user {USER}: --folder has to be where that may go")
        return data

    def launch(self, name):
        """Starts a server that has a data folder, and waits until it answers."""
        if self.pid(name) is not None:
            raise Trouble(f"{name} is running")
        self.wait_reaped(name)
        others = [each for each in self.servers if each != name]
        settings = {**SETTINGS, "port": str(self.servers[name]["port"])}
        if others:
            settings["synchronous_standby_names"] = f"ANY 1 ({', '.join(others)})"
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        with open(self.folder / name / "log", "ab") as log:
            process = subprocess.Popen(as_server_user(["postgres", "-D", str(self.data(name)), *options]), cwd="/",
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.servers[name]["pid"] = process.pid
        self.save()
        deadline = time.monotonic() + START_S
        while self.ask(name, "SELECT 1") is None:
            if process.poll() is not None:
                raise Trouble(f"{name} has ended; see {self.folder / name / 'log'}")
            if time.monotonic() > deadline:
                raise Trouble(f"{name} does not answer; see {self.folder / name / 'log'}")
            time.sleep(0.05)

    def follow(self, name):
        """Makes a server a standby of the primary, with nothing of what it had."""
        data = self.fresh_folder(name)
        port = self.servers[self.primary]["port"]
        self.slot(name)
        run(["pg_basebackup", f"--pgdata={data}", "--write-recovery-conf", f"--slot={name}", "--checkpoint=fast", "--no-sync",
             f"--dbname=host=127.0.0.1 port={port} user=godwit application_name={name}"], f"a copy of {self.primary} for {name}")
        self.launch(name)

    def slot(self, name):
        self.must(self.primary, "SELECT pg_create_physical_replication_slot('" + name + "', true) WHERE NOT EXISTS "
                  "(SELECT FROM pg_replication_slots WHERE slot_name = '" + name + "')")

    # --- asking them ---

    def ask(self, name, sql):
        """The answer's first field as text; None if there is no answer."""
        address = f"postgresql://godwit@127.0.0.1:{self.servers[name]['port']}/postgres?connect_timeout=3"
        try:
            done = subprocess.run([str(PROGRAMS / "psql"), "-X", "-q", "-t", "-A", address, "-c", "SET synchronous_commit = local",
                                   "-c", sql], capture_output=True, text=True, timeout=30)
        except subprocess.TimeoutExpired:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    def must(self, name, sql):
        answer = self.ask(name, sql)
        if answer is None:
            raise Trouble(f"{name} does not do what it has to: {sql}")
        return answer

    def wait_synchronous(self, count, seconds=START_S):
        """Until so many standbys count for commits."""
        deadline = time.monotonic() + seconds
        while True:
            there = self.ask(self.primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')")
            if int(there or 0) >= count:
                return
            if time.monotonic() > deadline:
                raise Trouble(f"{self.primary} has {there or 0} standbys that count, not {count}")
            time.sleep(0.1)

    def rows(self):
        """For each server: name, state of its process, what it is, and how the primary sees it."""
        seen = self.ask(self.primary, "SELECT string_agg(application_name || '=' || sync_state, ' ') FROM pg_stat_replication")
        states = dict(each.split("=") for each in (seen or "").split())
        for name in self.servers:
            process = self.process_state(name)
            standby = self.ask(name, "SELECT pg_is_in_recovery()") if process == "running" else None
            role = {"t": "standby", "f": "primary"}.get(standby, "-")
            yield name, process, role, states.get(name, "-")

    # --- what happens to them ---

    def promote(self, name=None):
        """Makes a standby the primary: the one that has received most. The others follow it."""
        if self.process_state(self.primary) not in ("not running", "ended"):
            raise Trouble(f"{self.primary} is the primary and its process is there: kill it first, or two would take writes")
        received = {}
        for each in self.servers:
            if each != self.primary and self.process_state(each) == "running":
                place = self.ask(each, "SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0') WHERE pg_is_in_recovery()")
                if place:
                    received[each] = int(place)
        if not received:
            raise Trouble("there is no standby that answers")
        best = max(received, key=received.get)
        name = name or best
        if name not in received:
            raise Trouble(f"{name} is no standby that answers; there are {', '.join(received)}")
        if received[name] < received[best]:
            raise Trouble(f"{best} has received more than {name}: what was acknowledged may be there only")
        if self.must(name, "SELECT pg_promote(true, 30)") != "t":
            raise Trouble(f"{name} was not promoted in time")
        self.state["primary"] = name
        self.save()
        for each in received:
            if each == name:
                continue
            self.slot(each)
            address = f"host=127.0.0.1 port={self.servers[name]['port']} user=godwit application_name={each}"
            self.must(each, f"ALTER SYSTEM SET primary_conninfo = '{address}'")
            self.must(each, "SELECT pg_reload_conf()")

    def restart(self, name):
        """Starts a server again: the primary and its standbys with what they have, one that was replaced as a new standby."""
        if self.process_state(name) not in ("not running", "ended"):
            self.signal(name, signal.SIGCONT)
            os.kill(self.pid(name), signal.SIGINT)  # a fast shutdown
            self.wait_end(name)
        old = name != self.primary and not (self.data(name) / "standby.signal").exists()
        if old:
            self.follow(name)
        else:
            self.launch(name)

    def start_all(self):
        """The primary first, so that the others find it."""
        for name in sorted(self.servers, key=lambda each: each != self.primary):
            if self.pid(name) is None:
                self.restart(name)

    def stop_all(self):
        """Standbys last: the primary's last words are for them."""
        for name in sorted(self.servers, key=lambda each: each != self.primary):
            if self.process_state(name) not in ("not running", "ended"):
                self.signal(name, signal.SIGCONT)
                os.kill(self.pid(name), signal.SIGINT)
                self.wait_end(name)

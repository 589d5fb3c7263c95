"""Several nodes on loopback, each with a key of its own, that know each other from one list."""

import pathlib
import random
import shutil
import subprocess
import tempfile
import time

from harness import GODWIT, PATIENCE, Node

WORKER = "prefill,decode,cache"


def until(condition, what, patience=PATIENCE):
    """Waits for what must come true, and gives it."""
    deadline = time.monotonic() + patience
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError("it did not happen in time: " + what)
        time.sleep(0.05)


def fresh_host():
    """An address of loopback that nobody else uses: all of 127.0.0.0/8 leads here, so ports need not be searched for."""
    return ".".join(["127", *(str(random.randint(1, 250)) for _ in range(3))])


class Mesh:
    """Nodes by name. None runs before it is started."""

    def __init__(self, **roles):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="godwit-mesh-"))
        self.roles = roles
        self.hosts = {name: self.host_of(name) for name in roles}
        self.nodes = {}
        for name in roles:
            self.new_key(name)
        self.list = self.write_list("mesh.toml", roles)

    def host_of(self, name):
        """Where a node is."""
        return fresh_host()

    def new_key(self, name):
        subprocess.run([GODWIT, "keys", "new", "--name", name, "--out", str(self.folder)], check=True, capture_output=True)

    def write_list(self, file, names):
        entries = [f'[[node]]\nname = "{name}"\nhost = "{self.hosts[name]}"\nport = 7401\nkey = "{name}.public"\n'
                   for name in names]
        path = self.folder / file
        path.write_text("\n".join(entries))
        return path

    def make(self, name, *flags, roles=None, nodes=None):
        """A node that is not started."""
        node = Node("--node", name, "--roles", roles or self.roles[name], "--mesh-nodes", str(nodes or self.list),
                    "--mesh-key", str(self.folder / f"{name}.secret"), *flags, ready=False)
        self.nodes[name] = node
        return node

    def start(self, *names, flags=()):
        """Starts nodes one after the other, and gives them when each is ready, which it is when it sees the others."""
        made = [self.make(name, *flags) for name in names]
        for node in made:
            node.start()
        for node in made:
            self.wait_ready(node)
        return made

    @staticmethod
    def wait_ready(node):
        until(lambda: node.call("GET", "/readyz").status == 200, "the node is ready")

    def close(self):
        for node in self.nodes.values():
            node.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def links(node):
    """How a node sees the others, by name."""
    return {each["name"]: each["link"] for each in node.call("GET", "/v1/nodes").json["data"]}

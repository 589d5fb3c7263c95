"""What tools/quickstart and what it calls say when something is missing: one sentence that names it. Each script runs in a copy of
tools/ with nothing else in it, and with stand-ins for what could change the system, so that nothing can be built or installed."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import PATIENCE, ROOT

NOBODY = 65534
# Whatever a script would do to the system ends it instead, and is told.
FORBIDDEN = ("apt-get", "cmake", "ninja", "setsid")
FORBIDDEN_SAYS = "must not have been called"


def as_nobody():
    """What starts a command without root's rights."""
    return ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups") if os.geteuid() == 0 else ()


def offline():
    """What starts a command without a network; None where that is not permitted."""
    for words in (("unshare", "-n"), ("unshare", "-rn")):
        if shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
            return words
    return None


class Quickstart(unittest.TestCase):
    def setUp(self):
        # In a folder that nobody may enter too.
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="godwit-quickstart-")).resolve()
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.home.chmod(0o755)
        self.checkout = self.home / "checkout"
        shutil.copytree(ROOT / "tools", self.checkout / "tools", ignore=shutil.ignore_patterns("__pycache__", "*.cpp", "*.hpp"))
        self.stands_in = self.home / "bin"
        self.stands_in.mkdir()
        for name in FORBIDDEN:
            self.stand_in(name, f'echo "{name} {FORBIDDEN_SAYS}"; exit 99')

    def stand_in(self, name, script):
        """A program that is found before the system's."""
        path = self.stands_in / name
        path.write_text("#!/bin/sh\n" + script + "\n")
        path.chmod(0o755)

    def packages_are_there(self, *but):
        """dpkg-query as it is where every package is installed, but for some."""
        script = (self.checkout / "tools" / "packages").read_text()
        lists = "".join(part.split("\n)\n")[0] for part in script.split("_packages=(\n")[1:])
        lines = "".join(f"{name} ii \n" for name in lists.split() if name not in but)
        self.stand_in("dpkg-query", f"cat <<'END'\n{lines}END")

    def disk_has(self, megabytes):
        self.stand_in("df", f"echo Filesystem; echo disk 9 9 {megabytes} 9% /")

    def run_tool(self, name, *words, prefix=(), **environment):
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "GODWIT_"))}
        path = f"{self.stands_in}:{os.environ['PATH']}"
        return subprocess.run([*prefix, str(self.checkout / "tools" / name), *map(str, words)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=self.home,
                              env={**inherited, "PATH": path, "LC_ALL": "C.UTF-8", **environment})

    def assert_refused(self, done, *words, code=1):
        """It ended with this code, and but for headings said one sentence, with these words."""
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        said = [line for line in done.stderr.splitlines() if "==>" not in line]
        self.assertEqual(len(said), 1, done.stderr)
        for word in words:
            self.assertIn(word, said[0])
        self.assertNotIn(FORBIDDEN_SAYS, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual([each.name for each in self.checkout.iterdir() if each.name in ("build", "godwit-data")], [])

    def test_an_unknown_option_is_named(self):
        self.assert_refused(self.run_tool("quickstart", "--dance"), "--dance", code=2)
        self.assert_refused(self.run_tool("fetch-model", "--dance"), "--dance")
        self.assert_refused(self.run_tool("packages", "dance"), "build or test")

    def test_what_cannot_be_a_model_is_refused_before_anything_is_built(self):
        text = self.home / "text.gguf"
        text.write_text("No model.\n")
        empty = self.home / "empty.gguf"
        empty.touch()
        for path in (self.home / "none.gguf", self.home, "/dev/null"):
            self.assert_refused(self.run_tool("quickstart", "--model", path), f"{path} is none")
        for path in (text, empty):
            self.assert_refused(self.run_tool("quickstart", f"--model={path}"), f"{path} is no model file")
        self.assert_refused(self.run_tool("quickstart", "--model"), "--model needs a file")

    def test_what_is_no_port_is_refused(self):
        for port in ("web", "65536", "-1", "", "80 80", "99999999999999999999"):
            self.assert_refused(self.run_tool("quickstart", "--port", port), "--port needs a number", f"'{port}'")
        self.assert_refused(self.run_tool("quickstart", "--port"), "--port needs a number")

    def test_another_port_than_that_of_the_node_that_runs_is_refused(self):
        # A shell by the name of the node, which ends with its input.
        node = self.checkout / "build" / "release" / "bin" / "godwitd"
        node.parent.mkdir(parents=True)
        shutil.copy("/bin/bash", node)
        state = self.checkout / "godwit-data"
        state.mkdir()
        with subprocess.Popen([node, "-c", "echo up; read", "node", "--data", state], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            (state / "quickstart.pid").write_text(f"{process.pid}\n")
            (state / "quickstart.url").write_text("http://127.0.0.1:8080\n")
            done = self.run_tool("quickstart", "--port", "8081")
            process.stdin.close()
        shutil.rmtree(self.checkout / "build")
        shutil.rmtree(state)
        self.assert_refused(done, "listens on port 8080, not 8081", f"kill {process.pid}")

    def test_a_folder_that_cannot_be_written_is_named_with_the_user(self):
        if os.geteuid() == 0:
            done = self.run_tool("quickstart", prefix=as_nobody())
        else:
            self.checkout.chmod(0o555)
            self.addCleanup(self.checkout.chmod, 0o755)
            done = self.run_tool("quickstart")
        self.assert_refused(done, f"{self.checkout} cannot be written by ")

    def test_without_root_the_missing_packages_are_named(self):
        self.packages_are_there("ninja-build", "capnproto")
        self.assert_refused(self.run_tool("packages", "build", prefix=as_nobody()), "root is needed to install 2 Debian packages",
                            "apt-get install ninja-build capnproto")
        self.checkout.chmod(0o777)
        self.assert_refused(self.run_tool("quickstart", prefix=as_nobody()), "root is needed to install 2 Debian packages")

    def test_a_full_disk_is_named_with_what_is_needed(self):
        self.disk_has(100)
        self.stand_in("id", "echo 0")
        self.packages_are_there("ninja-build")
        self.assert_refused(self.run_tool("quickstart"), "3000 MB of free disk are needed in /usr and 100 MB are there")
        self.packages_are_there()
        self.assert_refused(self.run_tool("quickstart"), f"2000 MB of free disk are needed in {self.checkout} and 100 MB are there")
        self.assert_refused(self.run_tool("fetch-model"), "free disk are needed in", "100 MB are there")

    def test_without_a_network_the_package_lists_cannot_be_read(self):
        prefix = offline()
        if prefix is None:
            self.skipTest("taking the network from a process is not permitted here")
        apt_get = shutil.which("apt-get")
        if apt_get is None:
            self.skipTest("there is no apt-get")
        self.disk_has(100000)
        self.stand_in("id", "echo 0")
        self.packages_are_there("ninja-build")
        # The real apt-get with lists of its own, which are empty, and which may only read lists.
        state = self.home / "apt"
        (state / "lists" / "partial").mkdir(parents=True)
        (state / "sources.list").write_text("deb http://packages.invalid/debian bookworm main\n")
        (state / "apt.conf").write_text(f'Dir::State "{state}";\nDir::Cache "{state}";\nDir::Etc::sourcelist "{state}/sources.list";\n'
                                        'Dir::Etc::sourceparts "/dev/null";\nAPT::Sandbox::User "root";\n')
        self.stand_in("apt-get", f'[ "$1" = update ] && exec {apt_get} "$@"\necho "{FORBIDDEN_SAYS}"; exit 99')
        self.assert_refused(self.run_tool("packages", "build", prefix=prefix, APT_CONFIG=str(state / "apt.conf")),
                            "the package lists could not be read; is there a network?")

    def test_without_a_network_the_model_cannot_be_fetched(self):
        prefix = offline()
        if prefix is None:
            self.skipTest("taking the network from a process is not permitted here")
        self.disk_has(100000)
        done = self.run_tool("fetch-model", prefix=prefix, PIP_RETRIES="0", PIP_CONFIG_FILE="/dev/null", PIP_NO_CACHE_DIR="1")
        self.assert_refused(done, "could not be downloaded; is there a network?", "--model FILE.gguf")
        self.assertEqual(list((self.checkout / "models").iterdir()), [])


if __name__ == "__main__":
    unittest.main()

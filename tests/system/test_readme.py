"""The commands of the README, run as they stand there against a node."""

import os
import pathlib
import re
import subprocess
import unittest

from harness import GODWIT, PATIENCE, ROOT, WithNode


class Readme(WithNode):
    def blocks(self):
        """The shell blocks of the chapter on talking to a node, with this build's programs and this node's address."""
        chapter = (ROOT / "README.md").read_text().split("## Talk to it")[1].split("\n## ")[0]
        programs = str(pathlib.Path(GODWIT).parent) + "/"
        for block in re.findall(r"```sh\n(.*?)```", chapter, re.S):
            self.assertIn("localhost:8080", block)
            yield block.replace("localhost:8080", f"127.0.0.1:{self.node.port}").replace("build/release/bin/", programs)

    def run_block(self, block):
        environment = {**os.environ, "GODWIT_URL": f"http://127.0.0.1:{self.node.port}", "HOME": str(self.node.data)}
        done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", block.replace("curl ", "curl -fsS ")], cwd="/",
                              capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment, input="")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_commands_do_what_the_readme_says(self):
        completion, sessions = (self.run_block(block) for block in self.blocks())
        self.assertIn("data: [DONE]", completion)
        self.assertRegex(completion, r'"finish_reason":"(stop|length)"')
        # The turn as it was made and as it was read again: the same bytes.
        turns = sessions.split("retry: 1000\n\n")[1:]
        self.assertEqual(len(turns), 2)
        self.assertEqual(turns[0], turns[1])
        self.assertIn("event: turn.completed", turns[0])


if __name__ == "__main__":
    unittest.main()

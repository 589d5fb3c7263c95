"""Compares our template interpreter with Jinja2, byte for byte.

usage: compare.py JINJA_CLI SOURCE_DIR

Renders the templates of tests/golden/templates with each of their contexts, the constructs listed in cases.py, and
templates that generate.py makes up. Where Jinja2 raises an error, ours must fail too.
"""

import json
import pathlib
import subprocess
import sys

try:
    import jinja2  # noqa: F401
except ImportError:
    sys.exit("compare.py: this Python has no jinja2: install python3-jinja2 (tools/packages lists it)")

import cases
import generate
import oracle

NOW = 1_764_510_845  # 2025-11-30 13:54:05 UTC


def golden(folder):
    """The templates of model families with the conversations that every one of them must render or refuse."""
    conversations = json.loads((folder / "conversations.json").read_text())
    for path in sorted(folder.glob("*.jinja")):
        for name, context in conversations.items():
            yield f"{path.name} with {name}", path.read_text(), context


def main():
    cli, source_dir = sys.argv[1], pathlib.Path(sys.argv[2])
    wanted = list(golden(source_dir / "tests/golden/templates"))
    wanted += [(f"case {source!r}", source, cases.CONTEXT) for source in cases.all_cases()]
    wanted += [(f"made-up {source!r}", source, cases.CONTEXT) for source in generate.templates(1500, seed=7)]
    batch = [{"source": source, "context": context, "now": NOW} for _, source, context in wanted]
    run = subprocess.run([cli], input=json.dumps(batch), stdout=subprocess.PIPE, text=True, check=True)
    rendered, failed, wrong = 0, 0, 0
    for (name, source, context), ours in zip(wanted, json.loads(run.stdout), strict=True):
        theirs = oracle.render(source, context, NOW)
        if isinstance(theirs, Exception):
            failed += 1
            agree = "error" in ours
        else:
            rendered += 1
            agree = ours.get("text") == theirs
        if not agree:
            wrong += 1
            print(f"{name}\n  jinja2: {theirs!r}\n  ours:   {ours}")
    print(f"{rendered} templates rendered, {failed} refused by both, {wrong} disagreements")
    if rendered < 1000:
        sys.exit("compare.py: too few templates were rendered to mean anything")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

"""Checks of the tree that need no compiler: who includes whom, which folders a page tells of, how long files
are, what must not be left in them."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What each top-level folder may include of ours. kernels uses the vocabulary of ids, errors and descriptors only.
ALLOWED = {
    "messages": {"messages"},
    "kernels": {"messages", "kernels"},
    "actors": {"messages", "kernels", "actors"},
    "services": {"messages", "kernels", "actors", "services"},
    "tools": {"messages", "kernels", "actors", "services", "tools"},
    "tests": {"messages", "kernels", "actors", "services", "tools", "tests"},
}
KERNELS_MAY_USE = {"messages/ids.hpp", "messages/error.hpp", "messages/result.hpp", "messages/check.hpp",
    "messages/descriptor.hpp"}
# Headers so costly that each stays in one translation unit (of the programs; tests may have their own).
ONE_UNIT = {"boost/beast": 1, "toml++/": 1, "CLI/": 3}
MOST_LINES = 600
LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
# CTest's list of a program's tests is cut at semicolons: what has one in its name would never run.
TEST_NAME = re.compile(r'\bTEST_CASE(?:_METHOD)?\s*\((?:\s*[\w:<>]+\s*,)?((?:\s*"(?:[^"\\]|\\.)*")+)')
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)
NEIGHBOUR = re.compile(r'^\s*#\s*include\s+"([^"/]+)"', re.M)
# Each test file is put into a namespace of its own (cmake/GodwitJoined.cmake), so it cannot open one of the tree's.
NAMESPACE = re.compile(r"^namespace \w+[\w:]* \{", re.M)


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, check=True, capture_output=True).stdout
    return [name for name in out.decode().split("\0") if name]


def folder_faults():
    """Where the folder table of ARCHITECTURE.md and the tree differ. The table names folders of the second level, or the first as a
    whole; behind a comma the first level may be left out."""
    rows = re.search(r"^\| folder \| holds \|\n\|[-|]+\n((?:\|.*\n)+)", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.M)
    if rows is None:
        return ["ARCHITECTURE.md: the table of folders is missing"]
    named = set()
    for row in rows[1].splitlines():
        top = ""
        for name in re.findall(r"`([^`]+)`", row.split("|")[1]):
            top = name.split("/")[0] if "/" in name or not top else top
            named.add(name if name.split("/")[0] == top else f"{top}/{name}")
    folders = [name.split("/")[:-1] for name in tracked()]
    there = {"/".join(parts[:depth]) for parts in folders for depth in (1, 2) if len(parts) >= depth}
    second = {"/".join(parts[:2]) for parts in folders if len(parts) >= 2 and parts[0] not in named}
    return [f"ARCHITECTURE.md: the table of folders lacks {name}" for name in sorted(second - named)] + [
        f"ARCHITECTURE.md: there is no folder {name}" for name in sorted(named - there)]


def main():
    faults = folder_faults()
    units = {prefix: set() for prefix in ONE_UNIT}
    for name in tracked("*.cpp", "*.hpp", "*.py", "*.cmake", "tools/*"):
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        lines = text.count("\n")
        if lines > MOST_LINES and "tests/golden/" not in name:
            faults.append(f"{name}: {lines} lines; over {MOST_LINES} it is two ideas")
        if name != "tools/lib/check_tree.py" and LEFTOVER.search(text):
            faults.append(f"{name}: a leftover ({LEFTOVER.search(text).group()})")
        if not name.endswith((".cpp", ".hpp")):
            continue
        for test in TEST_NAME.findall(text):
            if ";" in test:
                faults.append(f"{name}: a semicolon in the name of a test: {test.strip()}")
        for target in NEIGHBOUR.findall(text):
            faults.append(f"{name}: {target} is not included from the root")
        if name.endswith(".test.cpp") and NAMESPACE.search(text):
            faults.append(f"{name}: opens a namespace: {NAMESPACE.search(text).group()}")
        top = name.split("/")[0]
        for target in INCLUDE.findall(text):
            for prefix in ONE_UNIT:
                if target.startswith(prefix) and top != "tests":
                    units[prefix].add(name)
            target_top = target.split("/")[0]
            if "/" not in target or target_top not in ALLOWED:
                continue
            if target_top not in ALLOWED.get(top, set()):
                faults.append(f"{name}: {top} must not include {target}")
            if top == "kernels" and target_top == "messages" and target not in KERNELS_MAY_USE:
                faults.append(f"{name}: kernels must not include {target}")
    for prefix, names in units.items():
        if len(names) > ONE_UNIT[prefix]:
            faults.append(f"{prefix} is included by {len(names)} files, more than {ONE_UNIT[prefix]}: {', '.join(sorted(names))}")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

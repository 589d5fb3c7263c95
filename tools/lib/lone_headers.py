#!/usr/bin/env python3
"""Prints the headers that no source file includes before everything else: what compiling them alone still has to prove."""
import pathlib
import re
import subprocess

FOLDERS = ("messages", "kernels", "actors", "services", "tools")
FIRST_INCLUDE = re.compile(r"^\s*#\s*(\w+)(?:\s+\"([^\"]+)\")?", re.MULTILINE)


def files(suffix):
    listed = subprocess.run(["git", "ls-files", *(f"{folder}/*{suffix}" for folder in FOLDERS)], check=True,
                            capture_output=True, text=True)
    return listed.stdout.split()


def first_include(path):
    """The file that the first preprocessor line of `path` includes; None if that line does something else."""
    directive = FIRST_INCLUDE.search(pathlib.Path(path).read_text(encoding="utf-8"))
    return directive[2] if directive and directive[1] == "include" else None


proved = {first_include(path) for path in files(".cpp")}
for header in files(".hpp"):
    if not header.endswith("-inl.hpp") and header not in proved:
        print(header)

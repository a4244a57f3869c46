"""Runs clang-tidy over a build's sources, files changed by the last commits first, in parallel, until done or out of time.

usage: tools/tidy.py BUILD_FOLDER SECONDS [FILE...]
"""
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDERS = ("src/", "examples/", "bench/", "tests/")


def changed_files():
    """Files that differ from ten commits ago (or from the first commit), uncommitted changes included."""
    log = subprocess.run(["git", "rev-list", "--max-count=11", "HEAD"], capture_output=True, text=True).stdout.split()
    if not log:
        return set()
    return set(subprocess.run(["git", "diff", "--name-only", log[-1]], capture_output=True, text=True).stdout.split())


def read_database(build):
    """One compile command per source (kernels have one per instruction set and part), by path from the root."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        commands.setdefault(os.path.relpath(entry["file"]), entry)
    wanted = {n: c for n, c in commands.items() if n.startswith(FOLDERS) and not n.startswith("tests/contract/")}
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(list(wanted.values())))
    return folder, list(wanted)


def main():
    deadline = time.monotonic() + float(sys.argv[2])
    database, known = read_database(Path(sys.argv[1]))
    changed = changed_files()
    rank = {folder: position for position, folder in enumerate(FOLDERS)}
    names = sys.argv[3:] or sorted(known, key=lambda n: (n not in changed, rank[n[: n.index("/") + 1]], n))

    def tidy(name):
        left = deadline - time.monotonic()
        command = ["clang-tidy", "-p", database, "--quiet", "--extra-arg=-Wno-ignored-optimization-argument",
                   "--extra-arg=-Wno-unused-command-line-argument", name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=max(left, 0.01))
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode == 0, done.stdout + ("" if done.returncode == 0 else done.stderr)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = list(pool.map(tidy, names))
    for clean, text in results:
        if clean is False:
            print(text)
    checked = sum(clean is not None for clean, _ in results)
    dirty = sum(clean is False for clean, _ in results)
    print(f"clang-tidy: {checked} of {len(names)} files checked in the time given, {dirty} with findings")
    return 1 if dirty or (names and not checked) else 0


if __name__ == "__main__":
    sys.exit(main())

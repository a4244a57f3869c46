"""Runs clang-tidy over a build's sources, in parallel, until done or out of time: what the last commits changed comes first.

usage: tools/tidy.py BUILD_FOLDER SECONDS [FILE...]

A file found clean is not checked again while nothing changes that clang-tidy saw: the file, the headers of this tree that it
includes, .clang-tidy, the compile command, clang-tidy itself. BUILD_FOLDER/tidy/clean has an empty file for each such state.
"""
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDERS = ("src/", "apps/", "examples/", "bench/", "tests/")
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.M)
TIDY = ["clang-tidy", "--quiet", "--extra-arg=-Wno-ignored-optimization-argument",
        "--extra-arg=-Wno-unused-command-line-argument"]


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def changed_files():
    """Files that differ from ten commits ago (or from the first commit), uncommitted changes and new files included."""
    log = output_of("git", "rev-list", "--max-count=11", "HEAD").split()
    if not log:
        return set()
    new = output_of("git", "ls-files", "--others", "--exclude-standard")
    return set((output_of("git", "diff", "--name-only", log[-1]) + new).split())


def read_database(build):
    """One compile command per source (kernels have one per instruction set and part), by path from the root."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        commands.setdefault(os.path.relpath(entry["file"]), entry)
    wanted = {n: c for n, c in commands.items() if n.startswith(FOLDERS) and not n.startswith("tests/contract/")}
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(list(wanted.values())))
    return folder, wanted


@functools.cache
def contents(path):
    """The hash of a file, and what it includes."""
    text = Path(path).read_bytes()
    return hashlib.sha256(text).hexdigest(), [name.decode() for name in INCLUDE.findall(text)]


@functools.cache
def found(name, folders):
    return next((p for p in (os.path.normpath(os.path.join(f, name)) for f in folders) if os.path.isfile(p)), None)


def files_of(source, command):
    """The source and the headers it includes, near and far, whatever #if says; the system's are left out."""
    words = shlex.split(command)
    folders = tuple(os.path.relpath(w[2:]) for w in words if w.startswith("-I"))
    seen, open_ = {source}, [source]
    while open_:
        path = open_.pop()
        for name in contents(path)[1]:
            header = found(name, (os.path.dirname(path), *folders))
            if header and header not in seen:
                seen.add(header)
                open_.append(header)
    return seen


def state_of(files, command, tools):
    parts = [tools, command.replace(os.getcwd(), "."), *(f"{p} {contents(p)[0]}" for p in sorted(files))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def main():
    deadline = time.monotonic() + float(sys.argv[2])
    database, commands = read_database(Path(sys.argv[1]))
    clean = database / "clean"
    clean.mkdir(exist_ok=True)
    tools = " ".join(TIDY) + output_of("clang-tidy", "--version") + contents(".clang-tidy")[0]
    names = sys.argv[3:] or list(commands)
    files = {n: files_of(n, commands[n]["command"]) for n in names if n in commands}
    states = {n: clean / state_of(files[n], commands[n]["command"], tools) for n in files}
    changed = changed_files()

    def turn(name):
        """Changed files first, then those that include one, then the rest."""
        near = 0 if name in changed else 1 if changed & files.get(name, set()) else 2
        return near, *(not name.startswith(folder) for folder in FOLDERS), name

    def tidy(name):
        try:
            done = subprocess.run([*TIDY, "-p", database, name], capture_output=True, text=True, check=False,
                                  timeout=max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            return None, ""
        if done.returncode == 0 and name in states:
            states[name].touch()
        return done.returncode == 0, done.stdout + ("" if done.returncode == 0 else done.stderr)

    due = sorted((n for n in names if n not in states or not states[n].exists()), key=turn)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = dict(zip(due, pool.map(tidy, due)))
    for good, text in results.values():
        if good is False:
            print(text)
    late = [n for n, (good, _) in results.items() if good is None]
    dirty = sum(good is False for good, _ in results.values())
    if late:
        print(f"not checked, out of time: {', '.join(late[:8])}{', …' if len(late) > 8 else ''}")
    print(f"clang-tidy: {len(names) - len(late)} of {len(names)} files checked, {len(names) - len(due)} of them "
          f"unchanged since they were found clean, {dirty} with findings")
    return 1 if dirty or len(late) == len(due) > 0 else 0


if __name__ == "__main__":
    sys.exit(main())

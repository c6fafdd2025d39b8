#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says where the processor time of a build, or of the tests, goes: by target, by file, by test."""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Lines of g++ -ftime-report, user seconds in parentheses' place: which of our columns they belong to. Debug information is
# a part of "opt and generate" there.
PHASES = {"phase parsing": "parsing", "phase lang. deferred": "parsing", "phase opt and generate": "code",
          "phase last asm": "code", "symout": "debug", "variable tracking": "debug", "var-tracking": "debug"}
COLUMNS = ("processor", "parsing", "code", "debug", "linking")


def run_measured(command, **options):
    """Runs a command; returns its exit code, and the user and system seconds of it and of its children."""
    process = subprocess.Popen(command, **options)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def target_of(path):
    """The target that an output of the compiler or the linker belongs to."""
    found = re.search(r"CMakeFiles/([^/]+)\.dir/", path)
    return found.group(1) if found else os.path.basename(path)


def record(log, command):
    """What the build calls in place of the compiler: runs it, and adds a line to the log."""
    compiles = "-c" in command
    output = command[command.index("-o") + 1] if "-o" in command else command[-1]
    if compiles:
        command = command + ["-ftime-report"]
    with tempfile.TemporaryFile("w+") as errors:
        code, seconds = run_measured(command, stderr=errors)
        errors.seek(0)
        lines = errors.read().splitlines()
    row = collections.Counter({"processor": seconds})
    for line in lines:
        found = re.match(r" ?\|?([a-zA-Z .-]+?) +: +([0-9.]+) \(", line)
        if found is None and not re.match(r"Time variable|TOTAL|Extra diagnostic| *$| TOTAL", line):
            print(line, file=sys.stderr)
        elif found and found.group(1).strip() in PHASES:
            row[PHASES[found.group(1).strip()]] += float(found.group(2))
    row["code"] = max(0, row["code"] - row["debug"])
    if not compiles:
        row["linking"] = seconds
    source = command[command.index("-c") + 1] if compiles else ""
    entry = {"target": target_of(output), "source": os.path.relpath(source, ROOT) if source else "", **row}
    with open(log, "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    return code


def table(title, rows, most):
    """Prints rows (name -> seconds by column), the largest first."""
    print(f"\n{title:64}" + "".join(f"{column:>11}" for column in COLUMNS))
    ordered = sorted(rows.items(), key=lambda item: -item[1]["processor"])
    for name, row in ordered[:most]:
        print(f"{name:64}" + "".join(f"{row[column]:11.1f}" for column in COLUMNS))
    if len(ordered) > most:
        rest = collections.Counter()
        for _, row in ordered[most:]:
            rest.update(row)
        print(f"{len(ordered) - most:<4}{'others':60}" + "".join(f"{rest[column]:11.1f}" for column in COLUMNS))


def unity_contents(source):
    """The files that a unity file combines, for its name in the table."""
    path = os.path.join(ROOT, source)
    if "/unity/" not in source or not os.path.exists(path):
        return source
    with open(path, encoding="utf-8") as file:
        files = re.findall(r'#include "([^"]+)"', file.read())
    return f"{os.path.basename(source)} ({len(files)}: {os.path.basename(files[0])}...)"


def report_build(log):
    """The tables of a build."""
    targets = collections.defaultdict(collections.Counter)
    files = {}
    total = collections.Counter()
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            row = collections.Counter({column: entry.get(column, 0) for column in COLUMNS})
            targets[entry["target"]].update(row)
            total.update(row)
            if entry["source"]:
                files[f"{entry['target']}: {unity_contents(entry['source'])}"] = row
    table("target, seconds of processor time", targets, 40)
    table("file", files, 30)
    table("all", {"all": total}, 1)


def build(arguments):
    """Builds everything, or the targets, from nothing in build-times/."""
    folder = os.path.join(ROOT, "build-times")
    log = os.path.join(folder, "times.jsonl")
    launcher = f"{sys.executable};{os.path.abspath(__file__)};record;{log}"
    subprocess.run(["rm", "-rf", folder], check=True)
    subprocess.run(["cmake", "--preset", "release", "-B", folder, "-DCCACHE=OFF",
                    *[f"-DCMAKE_{language}_{kind}_LAUNCHER={launcher}" for language in ("C", "CXX")
                      for kind in ("COMPILER", "LINKER")]], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    started = time.monotonic()
    command = ["cmake", "--build", folder, "-j", str(os.cpu_count())]
    code, seconds = run_measured(command + (["--target", *arguments.targets] if arguments.targets else []),
                                 stdout=subprocess.DEVNULL)
    print(f"wall {time.monotonic() - started:.0f} s, processor {seconds:.0f} s, {os.cpu_count()} processors")
    report_build(log)
    return code


def run_test(test):
    """Runs one test; returns its name, its exit code, wall and processor seconds."""
    properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
    environment = dict(os.environ, **dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", [])))
    started = time.monotonic()
    code, seconds = run_measured(["timeout", str(int(properties.get("TIMEOUT", 1500))), *test["command"]],
                                 env=environment, cwd=properties.get("WORKING_DIRECTORY"),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return test["name"], code, time.monotonic() - started, seconds


def tests(arguments):
    """Runs the tests of a build folder, and prints a row for each."""
    listed = subprocess.run(["ctest", "--test-dir", arguments.folder, "--show-only=json-v1", *arguments.ctest],
                            check=True, capture_output=True, text=True).stdout
    entries = [test for test in json.loads(listed)["tests"] if "command" in test]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        rows = sorted(pool.map(run_test, entries), key=lambda row: -row[2])
    print(f"{'test, seconds':48}{'wall':>9}{'processor':>11}{'waiting':>9}  exit code")
    for name, code, wall, processor in rows:
        print(f"{name:48}{wall:9.1f}{processor:11.1f}{max(0, wall - processor):9.1f}  {code or ''}")
    print(f"{'all':48}{sum(row[2] for row in rows):9.1f}{sum(row[3] for row in rows):11.1f}")
    return 0


def main():
    """Reads the command line."""
    if sys.argv[1:2] == ["record"]:
        return record(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, epilog="Other work on the machine makes all figures larger.")
    commands = parser.add_subparsers(dest="command", required=True)
    builds = commands.add_parser("build", help="build from nothing in build-times/, without a compiler cache, with g++")
    builds.add_argument("targets", nargs="*", metavar="TARGET", help="default: everything")
    runs = commands.add_parser("tests", help="run the tests of a build folder; waiting: wall less processor time")
    runs.add_argument("folder", metavar="BUILD_DIR")
    runs.add_argument("--jobs", type=int, default=1, help="how many at a time (default 1)")
    runs.add_argument("ctest", nargs=argparse.REMAINDER, metavar="CTEST_ARGUMENT", help="e.g. -LE '^soak$'")
    arguments = parser.parse_args()
    return build(arguments) if arguments.command == "build" else tests(arguments)


if __name__ == "__main__":
    sys.exit(main())

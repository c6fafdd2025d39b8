#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each command line that README and the pages behind its doors print has a test in lines.txt. Usage: lines.py SOURCE

Exits with 1, and names each line without an entry, each test that does not exist, and each entry without a line."""

import pathlib
import re
import sys

# "$ command", "# command" of root, and "kiwi$ command".
PROMPT = re.compile(r"(?:\w+\$|\$|#) +(\w+|\S+ .*)$")


def pages_of(source):
    doors = (source / "README.md").read_text().split("## Limits")[0]
    return ["README.md", *sorted(set(re.findall(r"\]\(((?:\w+/)[\w-]+\.md)", doors)))]


def lines_of(page):
    """The command lines in the blocks of a page that are of no language."""
    inside = ""
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            inside = "" if inside else line.removeprefix("```") or "plain"
        elif inside in ("plain", "console") and (typed := PROMPT.match(line)):
            yield typed[1]


def entries_of(table):
    """(tests, page, pattern) of lines "TEST[,TEST...] PAGE PATTERN"; "-": none."""
    for line in table.read_text().splitlines():
        if line and not line.startswith("#"):
            tests, page, pattern = line.split(maxsplit=2)
            yield [test for test in tests.split(",") if test != "-"], page, pattern


def faults_of(source):
    here = source / "tests/packages"
    entries = list(entries_of(here / "lines.txt"))
    known = "\n".join(path.read_text() for path in source.glob("tests/**/CMakeLists.txt"))
    for tests, page, pattern in entries:
        for test in tests:
            if not (here / f"{test}.sh").exists() and not re.search(rf"\b{re.escape(test)}\b", known):
                yield f"lines.txt: there is no test {test} ({page}: {pattern})"
    unused = set(range(len(entries)))
    for page in pages_of(source):
        for line in lines_of(source / page):
            found = {i for i, (_, of, pattern) in enumerate(entries) if of == page and re.search(pattern, line)}
            unused -= found
            if not found:
                yield f"{page}: lines.txt names no test of: {line}"
    yield from (f"lines.txt: {entries[i][1]} has no line that matches {entries[i][2]}" for i in sorted(unused))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    faults = list(faults_of(pathlib.Path(sys.argv[1])))
    print("\n".join(faults) or "each line has a test")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()

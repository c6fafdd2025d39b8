#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the lists of libshmem's environment variables into the pages that have one.

Usage: scripts/environment-pages.py [--check] SHMEM_INFO

The lists come from the table in shmem/config/options.cpp, as `SHMEM_INFO --json` prints it. They stand between two marks in
docs/environment.md and docs/man/shmem.7. With --check nothing is written; exits with 1 if a page differs from the table.
"""

import json
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent


def sentences(variable):
    text = variable["help"] + "."
    if not text.split(" ")[0].endswith(":"):  # a value, such as "npu_v2:", stays as it is written
        text = text[0].upper() + text[1:]
    return [text] + ([variable["details"]] if "details" in variable else [])


def markdown(variables):
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for variable in variables:
        default = f"`{variable['default']}`" if variable["default"] else ""
        text = " ".join(sentences(variable)).replace("|", "\\|")
        if "old_name" in variable:
            text += f" `{variable['old_name']}` is its old name, which is read if this one is not set."
        rows.append(f"| `{variable['name']}` | {default} | {text} |")
    return "\n".join(rows)


def roff(variables):
    lines = []
    for variable in variables:
        default = f"={variable['default']}" if variable["default"] else ""
        lines += [".TP", f".B {variable['name']}{default}"]
        for text in sentences(variable):
            # A new sentence begins on a new line, for the spacing.
            text = text.replace("\\", "\\e").replace("-", "\\-")
            for sentence in re.split(r"(?<=[a-z)]\.) (?=[A-Z])", text):
                lines += textwrap.wrap(sentence, 118, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


PAGES = {
    "docs/environment.md": ("<!-- variables -->", "<!-- end of variables -->", markdown),
    "docs/man/shmem.7": ('.\\" variables', '.\\" end of variables', roff),
}


def main(arguments):
    check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + check:
        sys.exit(__doc__)
    # A wrong variable in the caller's environment is no error here.
    output = subprocess.run([arguments[-1], "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    variables = json.loads(output)["variables"]
    different = []
    for name, (begin, end, render) in PAGES.items():
        path = ROOT / name
        text = path.read_text()
        head, rest = text.split(begin + "\n")
        _, tail = rest.split(end)
        new = head + begin + "\n" + render(variables) + "\n" + end + tail
        if new != text:
            different.append(name)
            if not check:
                path.write_text(new)
    if check and different:
        sys.exit(f"{', '.join(different)}: run scripts/environment-pages.py build/bin/shmem_info")


main(sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The public names of Ascend SHMEM, for tests/abi/ascend_names.inc.

    scripts/ascend-names.py CHECKOUT VERSION[=REVISION]...

Reads the headers in include/ of a git checkout of that library at each revision, and prints NAME(version, name) for
each function, with the first version that has it; those that the list does not have begin with "+". Names of namespace
simt are SIMT(version, name). A new release is one more argument."""

import os
import re
import subprocess
import sys

LIST = os.path.join(os.path.dirname(__file__), "..", "tests", "abi", "ascend_names.inc")
SHARED = ("ACLSHMEM_SIZE_FUNC", "ACLSHMEM_P2P_SYNC_TYPE_FUNC")  # macros that several headers use


def declarations(show, files):
    """What the headers declare, with their macros expanded."""
    source = "#define ACLSHMEM_SIZE_FUNC(F) F(8); F(16); F(32); F(64); F(128)\n"
    aliases = set()
    for file in files:
        text = re.sub(r"/\*.*?\*/", "", show(file), flags=re.S)
        text = re.sub(r"^\s*#\s*(include|if|el|endif).*$", "", text, flags=re.M)
        alias = re.compile(r"^#define (shmemx?_\w+|aclshmemx?_\w+) aclshmemx?_\w+\s*$", flags=re.M)
        aliases |= {name for name in alias.findall(text) if name.startswith("acl")}
        text = alias.sub("", text)
        own = set(re.findall(r"^#define (ACLSHMEM\w*)\(", text, flags=re.M)) - set(SHARED)
        source += text + "\n" + "".join(f"#undef {name}\n" for name in sorted(own))
    expanded = subprocess.run(["cpp", "-P", "-w", "-x", "c++", "-"], input=source, capture_output=True, text=True, check=True)
    found = re.findall(r"\b(aclshmemx?_\w+|util_\w+_ffts_config)\s*\(", expanded.stdout)
    return {name for name in found if "BITS" not in name} | aliases  # BITS: a parameter that a macro forgot to paste


def names(checkout, revision):
    def git(*arguments):
        return subprocess.run(["git", "-C", checkout, *arguments], capture_output=True, text=True, check=True).stdout

    files = sorted(git("ls-tree", "-r", "--name-only", revision, "include").split(), key=lambda f: ("host_device" not in f, f))
    simt = [f for f in files if "device_simt" in f and "common_types" not in f]
    show = lambda file: git("show", f"{revision}:{file}")
    of_simt = {f"SIMT {name}" for name in declarations(show, simt)} if simt else set()
    return of_simt | {f"NAME {name}" for name in declarations(show, [f for f in files if "device_simt" not in f])}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    first = {}
    for argument in sys.argv[2:]:
        version, _, revision = argument.partition("=")
        for name in names(sys.argv[1], revision or version):
            first.setdefault(name, version)
    with open(LIST, encoding="utf-8") as file:
        listed = {f"{kind} {name}" for kind, name in re.findall(r"^(NAME|SIMT)\([^,]*, (\w+)\)", file.read(), flags=re.M)}
    for entry in sorted(first):
        kind, name = entry.split()
        print(f"{'' if entry in listed else '+'}{kind}({first[entry]}, {name})")


main()

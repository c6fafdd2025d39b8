#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rules_cited.py ROOT: every rule of uapi/README.md is cited by number in a test or in a model, and every number that
these cite is a rule. Of a range, such as "uapi rules 25 to 28", its ends count."""

import pathlib
import re
import sys

RULE = re.compile(r"^\*\*Rule (\d+)", re.MULTILINE)
CITATION = re.compile(r"\brules? ((?:\d+)(?:(?:, | and | or | to |-)\d+)*)", re.IGNORECASE)
SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".pml"}


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    rules = {int(number) for number in RULE.findall((root / "uapi/README.md").read_text(encoding="utf-8"))}
    cited = set()
    for file in (root / "tests").rglob("*"):
        if file.suffix in SUFFIXES:
            for citation in CITATION.findall(file.read_text(encoding="utf-8")):
                cited |= {int(number) for number in re.findall(r"\d+", citation)}
    for text, numbers in (("not cited by a test", rules - cited), ("cited, and not a rule", cited - rules)):
        if numbers:
            print(f"{text}: {', '.join(map(str, sorted(numbers)))}")
    return 0 if rules and rules == cited else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks six rules that the compiler does not check. Usage: scripts/check-sources.py [TREE]

Layers: a file includes files of its own folder and of lower layers, never of a higher one, and the parts of
libkvexchange only each other. docs/architecture.md describes the layers. Braces: every body of if, else, for and while
has them. Lines: at most 120 characters, also where clang-format does not break lines, as in comments, and of the text
of documents. Unit tests: a CMakeLists.txt names each file. Walks: a function that docs/architecture.md finds in a file
is there. Exits with 1 and names each line or file that breaks a rule."""

import pathlib
import re
import sys

# From top to bottom. A folder includes all its subfolders that are not named themselves.
LAYERS = [
    ["bench"],
    ["python", "openmpi", "examples", "tools", "shmem/info"],
    ["ascend"],
    ["kv/api"],
    ["kv/exchange"],
    ["kv/planner"],
    ["kv/operator"],
    ["shmem/api"],
    ["shmem/group"],
    ["shmem/runtime"],
    ["shmem/launcher"],
    ["shmem/profile"],
    ["shmem/checking"],
    ["shmem/collective", "shmem/heap"],
    ["shmem/team"],
    ["shmem/offload"],
    ["shmem/barrier"],
    ["shmem/net/ucx"],
    ["shmem/net"],
    ["shmem/layout"],
    ["shmem/memory"],
    ["shmem/bootstrap"],
    ["shmem/cores"],
    ["shmem/config"],
    ["shmem"],
    ["shmem/include"],
    ["driver/tool", "fake_device"],
    ["wire"],
    ["driver/barrier"],
    ["driver"],
    ["driver/include"],
    ["base"],
    ["uapi"],
]
# Folders that may not include a lower layer, and why.
FORBIDDEN = {
    # Each tests the other, so they share only the device's contract and general utilities.
    "fake_device": ["driver", "driver/include", "driver/barrier", "shmem", "wire"],
    # Its users are libraries of their own.
    "wire": ["driver", "driver/include", "driver/barrier", "uapi"],
    # Programs and bindings use the libraries' public headers.
    "examples": ["shmem", "shmem/api", "driver", "base"],
    "openmpi": ["shmem", "driver"],
    "python": ["shmem", "driver"],
    "tools/kv_shuffle": ["shmem", "kv/operator", "kv/planner", "driver"],
    "tools/kv_exchange": ["shmem", "shmem/memory", "kv/exchange", "driver"],
}
# The parts of libkvexchange include only each other: programs load it without libshmem. A name without a suffix stands
# for the header and the source.
EXCHANGE = [
    "base/",
    "wire/",
    "kv/exchange/",
    "kv/planner/",
    "kv/operator/plan.hpp",
    "shmem/config/",
    "shmem/include/",
    "shmem/result",
    "shmem/memory/cached_copy",
    "shmem/memory/copy",
    "shmem/memory/memory_limit",
    "shmem/memory/ordering",
]
RANK = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
STRING_OR_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
RAW_STRING = re.compile(r'R"([^(\s]*)\(.*?\)\1"', re.DOTALL)
STATEMENT = re.compile(r"^[ \t]*(?:\} )?(?:else )?(if|for|while)\b(?: constexpr)? ?\(|^[ \t]*(?:\} )?(else)\b(?! if)", re.MULTILINE)
MOST_COLUMNS = 120  # as in .clang-format
# Public headers in these folders are included without the folder's name.
PUBLIC = ["shmem/include", "ascend/include", "driver/include"]


def layer_of(path):
    """The longest named folder that `path` is in, or None."""
    for folder in path.parents:
        if str(folder) in RANK:
            return str(folder)
    return None


def target_of(tree, file, name):
    """The file of this tree that `file` includes as `name`, or None if it is not of this tree."""
    for folder in [file.parent, pathlib.Path(".")] + [pathlib.Path(folder) for folder in PUBLIC]:
        candidate = pathlib.Path(*(folder / name).parts)
        if (tree / candidate).is_file():
            return (tree / candidate).resolve().relative_to(tree.resolve())
    return None


def is_in_exchange(file):
    """Whether libkvexchange has it."""
    names = [str(file), str(file.with_suffix(""))]
    return any(names[0].startswith(part) if part.endswith("/") else part in names for part in EXCHANGE)


def layer_problems(tree, file):
    layer = layer_of(file)
    if layer is None:
        return [f"{file}: its folder is not among the layers of scripts/check-sources.py"]
    problems = []
    for name in INCLUDE.findall((tree / file).read_text()):
        target = target_of(tree, file, name)
        below = layer_of(target) if target else None
        if target and is_in_exchange(file) and not is_in_exchange(target):
            problems.append(f"{file} includes {name}: libkvexchange has no {target}")
        if below is None or below == layer:
            continue
        if RANK[below] <= RANK[layer]:
            problems.append(f"{file} includes {name}: {layer} is not above {below}")
        for folder, forbidden in FORBIDDEN.items():
            if str(file).startswith(folder + "/") and below in forbidden:
                problems.append(f"{file} includes {name}: {folder} knows nothing of {below}")
    return problems


def blank(match):
    """Blanks of the same number of characters and lines, so that nothing in them looks like code."""
    return "".join("\n" if character == "\n" else " " for character in match.group())


def end_of_condition(code, begin):
    """The position after the parenthesis that closes the one at `begin`."""
    depth = 0
    for place in range(begin, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place + 1
    return len(code)


def brace_problems(tree, file):
    code = STRING_OR_COMMENT.sub(blank, RAW_STRING.sub(blank, (tree / file).read_text()))
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, code, flags=re.MULTILINE)
    problems = []
    for match in STATEMENT.finditer(code):
        body = end_of_condition(code, match.end() - 1) if match.group(1) else match.end()
        after = re.sub(r"^\s*(?:\[\[\w+\]\])?\s*", "", code[body:])
        # A condition followed by a semicolon ends a do-while.
        if not after.startswith("{") and not (match.group(1) == "while" and after.startswith(";")):
            problems.append(f"{file}:{code.count(chr(10), 0, match.end()) + 1}: a body without braces")
    return problems


def line_problems(tree, file):
    lines = (tree / file).read_text().split("\n")
    return [f"{file}:{i + 1}: a line of {len(line)} characters" for i, line in enumerate(lines) if len(line) > MOST_COLUMNS]


def document_problems(tree):
    """Lines of text in documents that are too long. Code, tables and what has no space to break at may be."""
    problems = []
    tops = [top for top in sorted(tree.iterdir()) if top.is_dir() and not re.match(r"build|\.", top.name)]
    for page in sorted(tree.glob("*.md")) + [page for top in tops for page in sorted(top.rglob("*.md"))]:
        text = re.sub(r"^```.*?^```", lambda match: "\n" * match.group().count("\n"), page.read_text(), flags=re.M | re.S)
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > MOST_COLUMNS and not line.startswith("|") and " " in re.sub(r"`[^`]*`", "", line).strip():
                problems.append(f"{page.relative_to(tree)}:{number}: a line of {len(line)} characters")
    return problems


def unit_test_problems(tree):
    """Files of unit tests that no CMakeLists.txt names: nothing would run them."""
    named = {
        (lists.parent / name).resolve()
        for lists in (tree / "tests" / "unit").rglob("CMakeLists.txt")
        for name in re.findall(r"[^\s()]+_test\.cpp", lists.read_text())
    }
    files = sorted((tree / "tests" / "unit").rglob("*_test.cpp"))
    return [f"{file.relative_to(tree)}: no CMakeLists.txt names it" for file in files if file.resolve() not in named]


def has_function(code, name):
    """Whether a file has Class::name(, or the class with name( in it. Macros may name other functions."""
    *owners, function = name.split("::")
    if not owners:
        return re.search(rf"\b{function}\b", code)
    has_class = re.search(rf"\b(class|struct) (\w+::)*{owners[-1]}\b[^;]*?{{", code)
    return re.search(rf"\b{owners[-1]}::{function}\(", code) or (has_class and re.search(rf"\b{function}\(", code))


def walk_problems(tree):
    """Rows of docs/architecture.md, | number | `function` | `file` | ..., whose file has no such function."""
    page = tree / "docs" / "architecture.md"
    problems = []
    for name, file in re.findall(r"^\| *\d+ \| `([\w:]+)` \| `([^`]+)` \|", page.read_text() if page.exists() else "", re.M):
        code = (tree / file).read_text() if (tree / file).exists() else ""
        if not has_function(code, name):
            problems.append(f"docs/architecture.md: {name} is not in {file}")
    return problems


def sources(tree, tops):
    return [
        path.relative_to(tree)
        for top in tops
        for path in sorted((tree / top).rglob("*"))
        if path.suffix in (".c", ".cpp", ".h", ".hpp")
    ]


def main():
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    layered = sources(tree, sorted({folder.split("/")[0] for folder in RANK}))
    problems = [problem for file in layered for problem in layer_problems(tree, file)]
    braced = layered + sources(tree, ["tests"])
    problems += [problem for file in braced for problem in brace_problems(tree, file) + line_problems(tree, file)]
    problems += unit_test_problems(tree) + walk_problems(tree) + document_problems(tree)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(braced)} files, {len(problems)} problems")
    return 1 if problems or not layered else 0


if __name__ == "__main__":
    sys.exit(main())

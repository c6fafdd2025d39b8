#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites the launches of kernels in a C++ file of an Ascend SHMEM program, which no C++ compiler for processors takes:

    kernel<T><<<blocks, l2, stream>>>(arguments)

becomes a call of shmemx_ascend_launch (<shmem_launch.h> of the folder ascend) with the same arguments. A cast to a pointer
to the core's own memory, as (__ubuf__ T*)(32) or reinterpret_cast<__ubuf__ T*>(32), becomes a call that gives the address of
what the offset means here, so that the kernel can read and write there itself.

    ascend-launches FILE [-o OUTPUT] [-c CORES]

Without -o the result goes to standard output. Lines keep their numbers. A block is a core; with -c 2 it is two, as there
for kernels that use cube and vector cores."""

import argparse
import re
import sys

TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|<<<|>>>", re.S)
OPEN, CLOSE = "([{", ")]}"


class Bad(Exception):
    """A launch that cannot be read."""


def blank(text):
    """The text with comments, strings and characters as spaces of the same length."""
    return TOKEN.sub(lambda m: m.group() if m.group() in ("<<<", ">>>") else re.sub(r"[^\n]", " ", m.group()), text)


def closing(code, start):
    """The index of the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(code)):
        depth += (code[i] in OPEN) - (code[i] in CLOSE)
        if depth == 0:
            return i
    raise Bad("a bracket is not closed")


def parts(code, text):
    """The text of the arguments, which commas outside of brackets separate."""
    found, depth, angles, begin = [], 0, 0, 0
    for i, c in enumerate(code):
        depth += (c in OPEN) - (c in CLOSE)
        angles = max(0, angles + (c == "<") - (c == ">"))
        if c == "," and depth == 0 and (angles == 0 or ">" not in code[i:]):
            found.append(text[begin:i])
            begin = i + 1
    found.append(text[begin:])
    return [part.strip() for part in found if part.strip()]


def kernel_before(code, end):
    """Where the name of the kernel begins, which ends before `end`: with its namespaces and template arguments."""
    i = end
    while code[i - 1].isspace():
        i -= 1
    if code[i - 1] == ">":
        depth = 0
        while i > 0:
            i -= 1
            depth += (code[i] == ">") - (code[i] == "<")
            if depth == 0:
                break
    name = re.search(r"[A-Za-z_][\w:#]*\s*$", code[:i])  # #: of a macro
    if not name:
        raise Bad("there is no kernel before <<<")
    return name.start()


# A cast in C's way up to its operand, and the beginning of one that is not in brackets.
CAST = re.compile(r"\(\s*__ubuf__\s+([^()<>;]*(?:<[^();]*>)?[^()<>;]*\*)\s*\)\s*(?!(?:const|noexcept|override|final)\b)(?=[\w(:])")
NAMED_CAST = re.compile(r"reinterpret_cast<\s*__ubuf__\s+([^();]*?\*)\s*>(?=\s*\()")
PRIMARY = re.compile(r"[\w:]+(?:<[^()<>;]*>)?")
POSTFIX = re.compile(r"\s*(?:\.|->)\s*\w+(?:<[^()<>;]*>(?=\())?")


def end_of_operand(code, at):
    """Where the expression ends that a cast before `at` applies to: a name or brackets, and what follows them."""
    found = PRIMARY.match(code, at)
    at = found.end() if found else at
    while at < len(code):
        member = POSTFIX.match(code, at)
        if member:
            at = member.end()
        elif code[at] in "([":
            at = closing(code, at) + 1
        else:
            break
    return at


def rewrite_casts(text):
    """Casts to pointers to the core's own memory, the last one first, so that one inside of another is done."""
    for cast in reversed(list(CAST.finditer(blank(text)))):
        end = end_of_operand(blank(text), cast.end())
        operand = text[cast.end() : end]
        text = text[: cast.start()] + f"shmemi_ub<{cast[1]}>({operand})" + text[end:]
    for cast in reversed(list(NAMED_CAST.finditer(blank(text)))):
        text = text[: cast.start()] + f"shmemi_ub<{cast[1]}>" + text[cast.end() :]
    return text


def rewrite(text, name, cores):
    text = rewrite_casts(text)
    code = blank(text)
    at = len(code)
    while (at := code.rfind("<<<", 0, at)) >= 0:
        line = code.count("\n", 0, at) + 1
        try:
            begin = kernel_before(code, at)
            middle = code.find(">>>", at)
            after = re.compile(r"\s*\(").match(code, middle + 3) if middle >= 0 else None
            if after is None:
                raise Bad("there is no >>>( after it")
            end = closing(code, after.end() - 1)
            setup = parts(code[at + 3 : middle], text[at + 3 : middle])
            if not 2 <= len(setup) <= 3:
                raise Bad("a launch has blocks, l2 and a stream")
            kernel = text[begin:at].strip()
            arguments = parts(code[after.end() : end], text[after.end() : end])
            stream = setup[2] if len(setup) == 3 else "nullptr"
            blocks = setup[0] if cores == 1 else f"{cores} * ({setup[0]})"
            call = ", ".join([blocks, stream, f"[](auto... asci_a) {{ {kernel}(asci_a...); }}", *arguments])
            end_of_line = "\\\n" if "\\\n" in text[begin:end] else "\n"  # of a macro
            lines = end_of_line * (text.count("\n", begin, end) - call.count("\n"))
            text = text[:begin] + f"shmemx_ascend_launch({call}{lines})" + text[end + 1 :]
            code = blank(text)
            at = begin
        except Bad as error:
            sys.exit(f"{name}:{line}: {error}")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("-o", "--output")
    parser.add_argument("-c", "--cores", type=int, default=1, help="of a block")
    options = parser.parse_args()
    with open(options.file, encoding="utf-8") as file:
        text = file.read()
    result = f'#include <shmem_launch.h>\n#line 1 "{options.file}"\n' + rewrite(text, options.file, options.cores)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(result)
    else:
        sys.stdout.write(result)


main()

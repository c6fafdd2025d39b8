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
from typing import NamedTuple


class Token(NamedTuple):
    kind: str  # name, keyword, number, text (a string or a character), sign
    text: str
    start: int
    end: int


class Bad(Exception):
    """Code that cannot be read."""


TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\f\v]+|\\\n|//(?:\\\n|[^\n])*|/\*.*?\*/)
    |(?P<newline>\n)
    |(?P<text>(?:u8|[uUL])?(?:R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<number>\.?\d(?:'\w|[eEpP][+-]|[\w.])*)
    |(?P<name>[^\W\d]\w*(?:[ \t]*\#\#[ \t]*\w+)*)  # with the ## of macros
    |(?P<sign>::|->|\+\+|--|&&|\|\||.)""",
    re.S | re.X,
)
BRACKETS = set("()[]{}")
PARTNER = dict(zip("([{<)]}>", ")]}>([{<"))
SIGNS = {"*", "&", "&&", "-", "+", "++", "--"}  # before an operand; most of them also between two
# Words that stand before a cast or a launch, between two operands, or after the parameters of a function.
KEYWORDS = set("""return co_return co_yield co_await case throw else do and or not xor bitand bitor not_eq const volatile
    noexcept override final mutable constexpr requires try __attribute__ asm __asm__""".split())
TYPE = re.compile(r".*(\*|&|_t|\b(bool|char|short|int|long|signed|unsigned|float|double|half))", re.S)
POINTER = re.compile(r"[^=,]*\*\s*((const|volatile|(__)?restrict(__)?)\s*)*|[^=,]*\(\s*\*[^=,]*[)\]]\s*")


def tokenize(text):
    """The tokens, with a newline after each directive, between empty tokens."""
    found, directive, first = [Token("sign", "", 0, 0)] * 3, False, True
    for m in TOKEN.finditer(text):
        if m.lastgroup == "newline":
            if directive:
                found.append(Token("sign", "\n", m.start(), m.end()))
            directive, first = False, True
        elif m.lastgroup != "skip":
            directive, first = directive or (first and m[0] == "#"), False
            kind = "keyword" if m[0] in KEYWORDS else m.lastgroup
            found.append(Token(kind, m[0], m.start(), m.end()))
    return found + [Token("sign", "", len(text), len(text))] * 3


def apply(text, edits):
    """The text with (start, end, replacement) applied, which do not overlap."""
    result, at = [], 0
    for start, end, new in sorted(edits):
        result += [text[at:start], new]
        at = end
    return "".join(result) + text[at:]


def plain(tokens):
    """The code of the tokens on one line, without comments."""
    if any(t.text == "\n" for t in tokens):
        raise Bad("a directive is inside of the launch")
    gaps = [" " if t.end < after.start else "" for t, after in zip(tokens, tokens[1:])] + [""]
    return "".join(t.text + gap for t, gap in zip(tokens, gaps))


def partner(t, at):
    """The index of the bracket, or of the < or >, that belongs to the one at `at`."""
    own, step = t[at].text, 1 if t[at].text in ("(", "[", "{", "<") else -1
    begin = own + ("([{" if step > 0 else ")]}")
    at += step
    while t[at].text and t[at].text != PARTNER[own]:
        if t[at].text in begin:
            at = partner(t, at)
        elif t[at].text in BRACKETS or own in "<>" and t[at].text in (";", "\n"):
            break
        elif own == "<" and t[at].text in ("&&", "||") and t[at + 1].text not in (">", ","):
            break  # a comparison
        at += step
    if t[at].text != PARTNER[own]:
        raise Bad("a bracket is not closed")
    return at


def template_end(t, at):
    """Where the template arguments end that begin at `at`; `at` if there are none."""
    try:
        end = partner(t, at) if t[at].text == "<" else at
    except Bad:
        return at
    return at if end == at or is_word(t[end + 1]) and t[end + 1].text != "::" else end + 1


def parts(t, at, end):
    """The parts of a list, which commas outside of brackets separate."""
    found, begin = [], at
    while at < end:
        if t[at].text == ",":
            found.append(t[begin:at])
            begin = at + 1
        after = partner(t, at) + 1 if t[at].text in ("(", "[", "{") else template_end(t, at)
        at = after if at < after <= end else at + 1
    return [part for part in found + [t[begin:end]] if part]


def is_word(token):
    """Whether an expression can begin with the token, but not continue with it."""
    return token.kind in ("name", "number", "text") or token.text in ("::", "~", "!")


def name_end(t, at):
    """Where a name ends, with its namespaces and template arguments."""
    while t[at].kind == "name" or t[at].text == "::":
        before, at = t[at].text, template_end(t, at + 1)
        if before not in ("::", "template", "typename") and t[at].text != "::":
            break
    return at


def operand_end(t, at):
    """Where the operand of a cast ends that begins at `at`; None if none does."""
    while t[at].text in SIGNS | {"~", "!"}:
        at += 1
    if t[at].text == "(":
        end = partner(t, at)
        if is_word(t[end + 1]) or t[end + 1].text in SIGNS and TYPE.fullmatch(plain(t[at + 1 : end])):
            return operand_end(t, end + 1)  # it is another cast
        at = end + 1
    elif is_word(t[at]):
        at = name_end(t, at) if t[at].kind in ("name", "sign") else at + 1
        at = partner(t, at) + 1 if t[at].text == "{" else at
    else:
        return None
    while t[at].text in ("(", "[", ".", "->", "++", "--"):
        if t[at].text in BRACKETS:
            at = partner(t, at)
        at = name_end(t, at + 1) if t[at].text in (".", "->") else at + 1
    return at


def is_cast(t, at, end):
    """Whether the brackets are a cast, and not the parameters of a function."""
    before = t[at - 1]
    if before.text == "]" or any(token.text == "operator" for token in t[at - 3 : at]):
        return False
    return before.kind != "name" or t[at - 2].text == "define" and before.end < t[at].start


def cast_edits(text, t, at):
    """The edits for the cast whose type begins with the bracket at `at`; none if it is not a cast."""
    name = t[at - 1]
    named = t[at].text == "<"
    end = partner(t, at)
    own = [token for token in t[at + 1 : end] if token.text == "__ubuf__"]
    pointer = re.sub(r"<.*>", "", plain(t[at + 1 : end])) if own else ""
    if "__ubuf__" not in pointer or not POINTER.fullmatch(pointer):
        return []
    if t[end + 1].text != "(" if named else not is_cast(t, at, end):
        return []
    after = partner(t, end + 1) + 1 if named else operand_end(t, end + 1)
    if after is None or [token.text for token in t[end + 1 : after] if token.text not in "()"] in (["nullptr"], ["NULL"]):
        return []  # a null pointer remains one
    edits = [(token.start, re.compile("[ \t]*").match(text, token.end).end(), "") for token in own]
    if name.text == "reinterpret_cast":
        return edits + [(name.start, name.end, "shmemi_ub")]
    edits.append((t[after - 1].end, t[after - 1].end, ")"))
    if named:
        pointer = plain([token for token in t[at + 1 : end] if token not in own])
        return edits + [(name.start, name.start, f"shmemi_ub<{pointer}>(")]
    return edits + [(t[at].start, t[at].end, "shmemi_ub<"), (t[end].start, t[end].end, ">(")]


def rewrite_casts(text):
    """Makes calls of the casts to pointers to the core's own memory."""
    t, edits = tokenize(text), []
    for at, token in enumerate(t):
        if token.text == "(" or token.text == "<" and t[at - 1].text in ("reinterpret_cast", "static_cast"):
            try:
                edits += cast_edits(text, t, at)
            except Bad:
                pass  # the compiler says what is wrong
    return apply(text, edits)


def kernel_begin(t, at):
    """The index where the expression begins that names the kernel and ends before `at`."""
    at -= 1
    while t[at].text in (")", "]"):  # a call, an index, or (kernel)
        at = partner(t, at)
        if t[at].text == "(" and t[at - 1].kind != "name" and t[at - 1].text not in ("]", ">"):
            return at
        at -= 1
    if t[at].text == ">":
        at = partner(t, at) - 1
    if t[at].kind != "name":
        raise Bad("there is no kernel before <<<")
    at -= t[at - 1].text == "template"
    if t[at - 1].text in (".", "->") or t[at - 1].text == "::" and (t[at - 2].kind == "name" or t[at - 2].text == ">"):
        return kernel_begin(t, at - 1)
    return at - (t[at - 1].text == "::")


def is_triple(t, at, sign):
    return all(token.text == sign for token in t[at : at + 3]) and t[at].start + 2 == t[at + 2].start


def setup_end(t, at):
    """The index of the >>> that closes a setup which begins at `at`."""
    while t[at].text not in ("", ";"):
        if is_triple(t, at, ">") and t[at + 3].text == "(":
            return at
        at = partner(t, at) + 1 if t[at].text in ("(", "[", "{") else at + 1
    raise Bad("there is no >>>( after it")


def is_constant(t):
    """Whether an argument has no type of its own: 0, NULL, or constants in braces."""
    constants = ("{", "}", ",", "+", "-", "true", "false", "nullptr", "NULL")
    braces = t[0].text == "{" and all(token.text in constants or token.kind in ("number", "text") for token in t)
    return braces or [token.text for token in t] in (["0"], ["NULL"])


def function(kernel, arguments):
    """A function that calls the kernel: constants stand in it, because they would not convert if they were passed."""
    if not any(map(is_constant, arguments)) or any(plain(part).endswith("...") for part in arguments):
        return f"[=](auto... asci_a) {{ {kernel}(asci_a...); }}"
    names = ["" if is_constant(part) else f" asci_{i}" for i, part in enumerate(arguments)]
    values = [name.strip() or plain(part) for name, part in zip(names, arguments)]
    return f"[=]({', '.join('auto' + name for name in names)}) {{ {kernel}({', '.join(values)}); }}"


def launch_edits(text, t, at, cores):
    """The edits for the launch whose <<< is at `at`."""
    begin = kernel_begin(t, at)
    middle = setup_end(t, at + 3)
    arguments = parts(t, middle + 4, partner(t, middle + 3))
    setup = [plain(part) for part in parts(t, at + 3, middle)]
    if not 2 <= len(setup) <= 3:
        raise Bad("a launch has blocks, l2 and a stream")
    blocks = setup[0] if cores == 1 else f"{cores} * ({setup[0]})"
    stream = setup[2] if len(setup) == 3 else "nullptr"
    call = f"shmemx_ascend_launch({blocks}, {stream}, {function(plain(t[begin:at]), arguments)}"
    replaced = [(t[begin : middle + 4], call, ", " if arguments else "")]
    replaced += [(part, "0", "") for part in arguments if part[0].text == "{" and is_constant(part)]
    for tokens, new, after in replaced:
        old = text[tokens[0].start : tokens[-1].end]
        end_of_line = "\\\n" if "\\\n" in old else "\n"  # of a macro
        lines = end_of_line * (old.count("\n") - new.count("\n"))
        yield tokens[0].start, tokens[-1].end, new + lines + after


def rewrite(text, name, cores):
    text = rewrite_casts(text)
    t, edits = tokenize(text), []
    for at in range(3, len(t) - 3):
        if is_triple(t, at, "<") and t[at - 1].text != "operator":
            try:
                edits += launch_edits(text, t, at, cores)
            except Bad as error:
                sys.exit(f"{name}:{text.count(chr(10), 0, t[at].start) + 1}: {error}")
    return apply(text, edits)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("-o", "--output")
    parser.add_argument("-c", "--cores", type=int, default=1, help="of a block")
    options = parser.parse_args()
    if options.cores < 1:
        parser.error(f"-c {options.cores}: a block has at least one core")
    try:
        with open(options.file, encoding="utf-8-sig", errors="surrogateescape") as file:
            text = file.read()
        escaped = re.sub(r'(["\\])', r"\\\1", options.file)
        result = f'#include <shmem_launch.h>\n#line 1 "{escaped}"\n' + rewrite(text, options.file, options.cores)
        with open(options.output or sys.stdout.fileno(), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(result)
    except OSError as error:
        sys.exit(f"ascend-launches: {error.filename or options.output or options.file}: {error.strerror}")


main()

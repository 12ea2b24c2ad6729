"""One corpus of hostile file names, as bytes, for the tests of every output.

Every name is a legal Unix name: 1 to 255 bytes, no NUL, no slash, not `.` or `..`. `make_files`
creates those that the file system accepts.
"""

from __future__ import annotations

import os
from pathlib import Path

_SHELL = [
    b"with space", b"  leading and trailing  ", b"new\nline", b"\nstarts-with-newline",
    b"ends-with-newline\n", b"two\n\nlines", b"tab\there", b"single'quote", b'double"quote',
    b"'; touch PWNED; '", b'"; touch PWNED; "', b"$(touch PWNED)", b"`touch PWNED`", b"${HOME}",
    b"$HOME", b"$'\\n'", b"a;b", b"a|b", b"a||b", b"a&b", b"a&&b", b"a>b", b"a<b", b"a<(b)",
    b"star*", b"quest?ion", b"brack[et", b"brack]et", b"[a-z]", b"{a,b}", b"{", b"}", b"(", b")",
    b"~", b"~root", b"!history", b"!!", b"^caret", b"back\\slash", b"\\n literal", b"\\",
    b"trailing\\", b"\\x41", b"\\0", b"\\101", b"#comment", b"a#b", b"=", b"a=b", b"A=1",
    b"IFS=x", b":", b"a:b:c", b",", b"a,b", b"@", b"@file", b"+", b"%s", b"%n%n%n", b"%d%%",
    b"%(name)s", b"{0}", b"{name}", b"{{x}}", b"$(", b"$((1+1))", b"EOF", b"'EOF'\n",
]  # fmt: skip  # a table
_OPTIONS = [
    b"-", b"--", b"-n", b"-rf", b"--help", b"--force", b"--version", b"-h", b"--output=x",
    b"-exec", b"...", b"..x", b".hidden", b"..\n", b". ", b"con", b"NUL", b"null", b"None", b"nan",
    b"true", b"0", b"-1", b"1e9", b"0x10", b"007",
]  # fmt: skip  # a table
_TERMINAL = [
    b"\x1b[31mred\x1b[0m", b"\x1b[2J\x1b[H", b"\x1b]0;title\x07", b"\x1b]8;;http:x\x1b\\link",
    b"\x1b]52;c;aGk=\x07", b"\x07bell", b"carriage\rreturn", b"back\x08space", b"\x0bvt", b"\x0cff",
    b"\x01\x02\x03\x04", b"\x1f\x7f", b"\x9b31mC1", b"\x90dcs\x9c", b"\xc2\x9b31m utf8 C1",
    b"\x0eshift\x0f", bytes(range(1, 32)),
]  # fmt: skip  # a table
_ENCODING = [
    b"\xff\xfe", b"\xff", b"\x80", b"lat\xe9in1", b"caf\xc3\xa9", b"cafe\xcc\x81", b"trunc\xc3",
    b"\xc0\xafoverlong", b"\xed\xa0\x80surrogate", b"\xf4\x90\x80\x80too-high", b"\xef\xbb\xbfbom",
    bytes(range(0x80, 0x100)), b"mixed\xff\n\"'$(x)\xfe",
    "\u202egpj.exe".encode(), "zero\u200bwidth".encode(), "nbsp\u00a0x".encode(),
    "line\u2028sep\u2029para".encode(), "\u0085nel".encode(), "\ufeffzwnbsp".encode(),
    "emoji\U0001f525".encode(), "\U0001f468\u200d\U0001f469\u200d\U0001f467".encode(),
    "日本語".encode(), "\ufffd".encode(), "\U000e0041tag".encode(),
]  # fmt: skip  # a table
_FORMATS = [  # HTML, DOT, CI annotations, Markdown, YAML, JSON, SQL, regex, make
    b"<script>alert(1)<", b"<img src=x onerror=alert(1)>", b"&lt;", b"&#x3c;", b"]]>", b"<!--",
    b"-->",
    b'"];', b'a"];b->c;["', b"a->b", b"a -> b", b"digraph", b"\\N", b"\\G", b"\\l", b"|{<x>",
    b"::error::x", b"::set-output name=a::b", b"%0A::error::x", b"##vso[x]", b"javascript:x",
    b"[link](x)", b"**bold**", b"| table |", b"```", b"---", b"- item", b"key: value", b"- !!x",
    b"*alias", b"&anchor", b"=cmd|' 'C0'!A0", b"+SUM(1)", b"a\tb\tc", b'{"json":1}', b"null\\u0000",
    b"' OR 1=1 --", b"'; DROP TABLE files; --", b"(a+)+$", b".*", b"^$", b"a.b", b"\\d+", b"(?i)x",
    b"[", b"user.tracehint", b"DP=local", b"x y=z", b"$@", b"$<", b"$^", b"$(shell touch PWNED)",
    b"a: b", b"%.o", b"LOCAL", b"MAKEFLOW_INPUTS", b"@BATCH_LOCAL=1",
]  # fmt: skip  # a table
_LONG = [
    b"n" * 255, b"\xc3\xa9" * 127, b"\xff" * 255, b" " * 255, b"\n" * 255, b'"' * 255, b"\\" * 255,
    b"x" * 127 + b"\n" + b"y" * 127,
]  # fmt: skip  # a table

HOSTILE_NAMES: list[bytes] = list(
    dict.fromkeys(_SHELL + _OPTIONS + _TERMINAL + _ENCODING + _FORMATS + _LONG)
)


def make_files(folder: Path | str, content: bytes = b"x") -> list[bytes]:
    """Create every hostile name below `folder`; return the names that the file system accepted."""
    made = []
    for name in HOSTILE_NAMES:
        path = os.path.join(os.fsencode(folder), name)  # noqa: PTH118 (bytes)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        except OSError:
            continue
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        made.append(name)
    return made

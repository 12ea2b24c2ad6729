"""Lines of strace logs: every prefix that strace's options produce, split calls, invalid input."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.hostile import HOSTILE_NAMES
from tests.support.straced import parse
from tracehint.collectors.strace.lexer import (
    Call,
    LexStats,
    descriptor,
    lex,
    split_args,
    string_cut,
    strings,
)


def calls(*lines: bytes, tid: int = 1) -> tuple[list[Call], LexStats]:
    stats = LexStats()
    return list(lex([line + b"\n" for line in lines], stats, tid=tid)), stats


@pytest.mark.parametrize(
    ("line", "tid", "t_ns", "clock"),
    [
        (b"close(3) = 0", 1, 1000, "none"),
        (b"close(3)                                = 0", 1, 1000, "none"),
        (b"123 close(3) = 0", 123, 1000, "none"),
        (b"123  1700000000.123456 close(3) = 0", 123, 1700000000123456000, "unix"),
        (b"1700000000.123456789 close(3) = 0", 1, 1700000000123456789, "unix"),
        (b"1700000000 close(3) = 0", 1, 1700000000000000000, "unix"),
        (b"[pid   123] close(3) = 0", 123, 1000, "none"),
        (b"[pid 123] 10:00:01.5 close(3) = 0", 123, 36001500000000, "daytime"),
        (b"123 10:00:01 close(3) = 0", 123, 36001000000000, "daytime"),
        (b"     0.000125 close(3) = 0", 1, 125000, "relative"),
        (b"123       0.000125 close(3) = 0", 123, 125000, "relative"),
        (b"10:00:01 (+     0.000125) close(3) = 0", 1, 36001000000000, "daytime"),
        (b"123 close(3) = 0 <0.000042>", 123, 1000, "none"),
        (b"123 [00007f12ab34cd56] close(3) = 0", 123, 1000, "none"),
        (b"123 [   3] close(3) = 0", 123, 1000, "none"),
    ],
)
def test_prefixes(line: bytes, tid: int, t_ns: int, clock: str) -> None:
    (call,), stats = calls(line)
    assert (call.tid, call.t_ns, call.name, call.args) == (tid, t_ns, b"close", b"3")
    assert call.result == b"0"
    assert stats.clock == clock
    assert stats.bad == 0


def test_unfinished_and_resumed_are_one_call_with_both_times() -> None:
    found, stats = calls(
        b"7 1700000000.1 read(3, <unfinished ...>",
        b"8 1700000000.2 close(4) = 0",
        b'7 1700000000.3 <... read resumed>"abc", 10) = 3',
    )
    assert [(c.kind, c.tid, c.name) for c in found] == [
        ("start", 7, b"read"),
        ("call", 8, b"close"),
        ("call", 7, b"read"),
    ]
    read = found[2]
    assert (read.args, read.result) == (b'3,"abc", 10', b"3")
    assert (read.t_ns, read.end_ns) == (1700000000100000000, 1700000000300000000)
    assert stats.bad == 0


@pytest.mark.parametrize(
    "line",
    [
        b"7 --- SIGCHLD {si_signo=SIGCHLD} ---",
        b"strace: Process 9 attached",
        b" > /lib/libc.so.6(read+0x12) [0xff]",
        b"7 exit_group(0) = ?",
    ],
)
def test_known_noise_is_not_counted(line: bytes) -> None:
    assert calls(line)[1].bad == 0


def test_lines_that_are_not_understood_are_counted_by_number() -> None:
    _, stats = calls(
        b"garbage", b"close(3) = 0", b"7 <... read resumed>) = 1", b'read(3, "abc', b"\xff\xfe\x00"
    )
    assert stats.bad == 4
    assert stats.bad_lines == ["1", "3", "4", "5"]


def test_times_of_day_pass_midnight() -> None:
    found, _ = calls(b"23:59:59 close(3) = 0", b"00:00:01 close(4) = 0")
    assert found[1].t_ns - found[0].t_ns == 2 * 10**9


def test_a_name_that_looks_like_the_end_of_a_call() -> None:
    (call,), _ = calls(rb'openat(AT_FDCWD</a) = 3>, "x) = 5", O_RDONLY) = 3</a) = 3/x) = 5>')
    assert split_args(call.args) == [rb"AT_FDCWD</a) = 3>", rb'"x) = 5"', rb"O_RDONLY"]
    assert descriptor(call.result) == (3, b"/a) = 3/x) = 5", False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"plain"', (b"plain", False)),
        (rb'"a\"b\\c"', (b'a"b\\c', False)),
        (rb'"\n\t\r\v\f"', (b"\n\t\r\v\f", False)),
        (rb'"\0\1\12\377\0001"', (b"\0\1\n\xff\x001", False)),
        (rb'"\x2f\xff"', (b"/\xff", False)),
        (rb'"cut"...', (b"cut", True)),
        (rb'""', (b"", False)),
    ],
)
def test_strings(text: bytes, value: tuple[bytes, bool]) -> None:
    assert string_cut(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'["sh", "-c", "a, b"]', ([b"sh", b"-c", b"a, b"], 0)),
        (rb'["sh", "abc"...]', ([b"sh", b"abc"], 1)),
        (rb'["sh", "x", ...]', ([b"sh", b"x"], 1)),
        (rb"[]", ([], 0)),
    ],
)
def test_lists_of_strings(text: bytes, value: tuple[list[bytes], int]) -> None:
    assert strings(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"3", (3, None, False)),
        (b"0x1f", (31, None, False)),
        (b"3</a b>", (3, b"/a b", False)),
        (rb"3</a\76b\n>(deleted)", (3, b"/a>b\n", True)),
        (b"AT_FDCWD</w>", (-100, b"/w", False)),
        (b"3</dev/null<char 1:3>>", (3, b"/dev/null", False)),
        (b"5<TCP:[1.2.3.4:80->5.6.7.8:90]>", (5, b"TCP:[1.2.3.4:80->5.6.7.8:90]", False)),
        (b"5<pipe:[77]>", (5, b"pipe:[77]", False)),
    ],
)
def test_descriptors(text: bytes, value: tuple[int, bytes | None, bool]) -> None:
    assert descriptor(text) == value


def _as_strace_prints(name: bytes, extra: bytes = b"") -> bytes:
    """Quote as strace's print_quoted_string does, with octal escapes for unusual bytes."""
    short = {10: b"\\n", 9: b"\\t", 13: b"\\r", 11: b"\\v", 12: b"\\f"}
    out = b""
    for i, c in enumerate(name):
        if c in b'"\\':
            out += b"\\" + bytes((c,))
        elif c in short:
            out += short[c]
        elif c < 32 or c > 126 or c in extra:
            more = name[i + 1 : i + 2].isdigit()
            out += b"\\%03o" % c if more else b"\\%o" % c
        else:
            out += bytes((c,))
    return out


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_hostile_names_come_back_as_bytes(name: bytes) -> None:
    quoted, noted = _as_strace_prints(name), _as_strace_prints(name, b"<>")
    log = (
        b'5 1700000000.1 openat(AT_FDCWD</w>, "' + quoted + b'", O_RDONLY) = 3</w/' + noted + b">\n"
        b"5 1700000000.2 read(3</w/" + noted + b'>, "x) = 3"..., 100) = 7\n'
        b"5 1700000000.3 close(3</w/" + noted + b">) = 0\n"
    )
    tables, stats = parse(log)
    assert stats.bad == 0
    (row,) = tables["opens"].to_pylist()
    assert (row["path"], row["read_bytes"]) == (b"/w/" + name, 7)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=20))
def test_any_bytes_are_counted_and_never_fatal(lines: list[bytes]) -> None:
    parse(b"\n".join(lines))


_PIECES = st.sampled_from(
    [b"7 ", b"[pid 8] ", b"1700000000.5 ", b"open", b"at", b"read", b"dup2", b"execve", b"clone",
     b"rename", b"mmap", b"(", b")", b" = ", b"3", b"-1", b"0x10", b'"a', b'"', b"</w/x", b">",
     b", ", b"[", b"]", b"{", b"}", b"<unfinished ...>", b"<... read resumed>", b"\\", b"?",
     b"O_CREAT", b"AT_FDCWD", b"+++ exited with 0 +++", b"NULL", b"\xff", b"99999999999999999999"]
)  # fmt: skip  # a table


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(_PIECES, max_size=14).map(b"".join), max_size=12))
def test_broken_lines_are_counted_and_never_fatal(lines: list[bytes]) -> None:
    parse(b"\n".join(lines))

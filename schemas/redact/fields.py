"""Secrets inside one word or one piece of program text: URLs, headers, NAME=VALUE, SQL, .netrc.

Each search goes over the text once; quantifiers are bounded or possessive.
"""

from __future__ import annotations

import re
from functools import cache

from tracehint.schemas.redact.names import kind_of_name
from tracehint.schemas.redact.shapes import REDACTED, hide_shapes
from tracehint.schemas.redact.values import is_random, is_secret

_HEADER_NAMES = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_QUERY_NAMES = frozenset({"sig", "signature", "x-amz-signature", "x-goog-signature"})
_INDENT = 80
_QUOTE = r"\\{0,3}[\"']"

# What else program text holds; the group `secret` is taken out.
STATEMENTS: dict[str, str] = {
    "Authorization: SCHEME S":
        rf"(?i)\bauthorization(?:{_QUOTE})?\s{{0,2}}[:=]\s{{0,2}}(?:{_QUOTE})?"
        r"(?:[a-z][\w-]{1,30}\s{1,4})?(?P<secret>(?:<redacted>|[^'\"\s,;&<>\\]){1,4096}+)",
    "SQL: IDENTIFIED BY 'S', PASSWORD 'S'":
        r"(?i)\b(?:identified\s{1,4}(?:with\s{1,4}\w{1,64}\s{1,4})?by|password)\s{1,4}"
        rf"(?:\(?\s{{0,2}})(?P<q>{_QUOTE})(?P<secret>[^'\"]{{1,400}}+)",
    "SQL: PASSWORD('S')":
        rf"(?i)\bpassword\s{{0,2}}\(\s{{0,2}}(?P<q>{_QUOTE})(?P<secret>[^'\"]{{1,400}}+)",
    ".netrc: login U password S":
        r"\b(?:login|account|machine)\s{1,4}\S{1,200}\s{1,4}password\s{1,4}(?P<secret>[^\s'\"]{1,400}+)",
    "Python: auth=('U', 'S')":
        rf"\bauth\s{{0,4}}=\s{{0,4}}\(\s{{0,4}}{_QUOTE}[^'\"]{{0,200}}+{_QUOTE}\s{{0,4}},\s{{0,4}}"
        rf"{_QUOTE}(?P<secret>[^'\"]{{1,400}}+)",
    "DBI: connect(D, 'U', 'S')":
        rf"\bconnect\s{{0,4}}\((?:\s{{0,4}}{_QUOTE}[^'\"]{{0,200}}+{_QUOTE}\s{{0,4}},){{2}}\s{{0,4}}"
        rf"{_QUOTE}(?P<secret>[^'\"]{{1,400}}+)",
}  # fmt: skip  # a table


_STATEMENT_WORDS = ("pass", "auth", "connect", "identified")  # every statement has one of them
_SIGNS = ("=", ":", "<-", ",")  # between a name and its value


@cache
def _statements() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(p, re.ASCII) for p in STATEMENTS.values())


@cache
def _url() -> re.Pattern[str]:
    return re.compile(r"(?<=://)(?:<redacted>|[^\s'\"<>`]){1,4096}+", re.ASCII)


@cache
def _bare_user() -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w/.@:%-])(?P<user>:pserver:[\w.-]{1,64}|(?!mailto:)[A-Za-z][\w.-]{0,63}+):"
        r"(?P<secret>[^\s:@/'\"<>]{1,128}+)@(?!sha256:)(?=[\w\[])",
        re.ASCII,
    )


@cache
def _named() -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w.-])(?P<name>-{0,2}[A-Za-z_][\w.-]{0,199}+)"
        rf"(?P<op>(?:{_QUOTE})?[\]}}]?(?P<before>\s{{0,4}}+)(?:=>|<-|:=|:-|=(?![=~])|:(?![:/=])|,(?=\s?[\"']))"
        rf"(?P<after>\s{{0,4}}+))(?P<quote>[bfru]?{_QUOTE})?",
        re.ASCII,
    )


@cache
def _bare_value() -> re.Pattern[str]:
    return re.compile(r"(?:<redacted>|[^\s\"'&;,|<>(){}\[\]\\`])*+", re.ASCII)


def hide_fields(text: str) -> str:
    """The text without secrets that are named or shaped where they stand."""
    text = hide_shapes(text)
    if "://" in text:
        text = _url().sub(lambda m: _hide_userinfo(m[0]), text)
    if "@" in text and ":" in text:
        text = (
            _bare_user()
            .sub(lambda m: f"{m['user']}:{REDACTED}", text)
            .replace(REDACTED + REDACTED, REDACTED)
        )
    lower = text.lower()
    if any(word in lower for word in _STATEMENT_WORDS):
        for statement in _statements():
            text = statement.sub(_hide_group, text)
    return _hide_named(text) if any(sign in text for sign in _SIGNS) else text


def hide_header(word: str) -> str | None:
    """`Name: value` of a header whose value is secret, without it; None: it is no such header."""
    name, colon, value = word.partition(":")
    name = name.strip()
    if not colon or len(name) > 80 or any(c.isspace() or c in "\"'={" for c in name):
        return None
    if name.lower() not in _HEADER_NAMES and kind_of_name(name) not in ("strong", "mild"):
        return None
    rest = value.lstrip()
    scheme, blank, credentials = rest.partition(" ")
    if not (blank and name.lower().endswith("authorization") and scheme.isascii()):
        scheme, credentials = "", rest
    if value.startswith(":"):
        return None
    if not is_secret(credentials.strip(), "strong"):
        return word if credentials == REDACTED or name.lower() in _HEADER_NAMES else None
    lead = value[: len(value) - len(rest)]
    return f"{word[: word.index(':')]}:{lead}{scheme}{blank if scheme else ''}{REDACTED}"


def _hide_userinfo(rest: str) -> str:
    """What follows `://`, without the password, or without a token in the user's place."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" not in authority:
        at = rest.find("@")
        user, colon, secret = rest[: max(at, 0)].partition(":")
        port = secret.split("/", 1)[0]
        if at < 0 or not colon or "/" in user or not port or port.isdigit():
            return rest
        return f"{user}:{REDACTED}{rest[at:]}"
    at = authority.rindex("@")
    user, colon, secret = authority[:at].partition(":")
    if is_random(user):
        user = REDACTED
    if colon and secret and is_secret(secret, "strong") and user != REDACTED:
        secret = REDACTED
    return f"{user}{colon}{secret}{rest[at:]}"


def _hide_group(found: re.Match[str]) -> str:
    secret = found["secret"]
    if not is_secret(secret, "strong"):
        return found[0]
    start = found.start("secret") - found.start()
    return found[0][:start] + REDACTED + found[0][start + len(secret) :]


def _hide_named(text: str) -> str:
    """NAME=VALUE, "name": "value", name: value, name <- "value" anywhere in the text."""
    out: list[str] = []
    done = at = 0
    search = _named().search
    while (found := search(text, at)) is not None:
        at = max(found.end(), at + 1)
        end = _value_end(text, found)
        if end is None:
            if found["quote"]:
                at = found.start("quote")
            continue
        out += (text[done : found.end()], REDACTED)
        done = at = end
    return "".join((*out, text[done:]))


def _value_end(text: str, found: re.Match[str]) -> int | None:
    """Where the secret that begins at the match's end ends; None: it is none."""
    name, op = found["name"], found["op"]
    kind = kind_of_name(name)
    if not kind and name.lower().lstrip("-") in _QUERY_NAMES and "=" in op:
        kind = "weak"
    if not kind or (op.strip().endswith(",") and not name.isupper()):
        return None
    start = found.end()
    quote = found["quote"]
    if quote:
        end = text.find(quote.lstrip("bfru"), start)
        return end if end > start and is_secret(text[start:end], kind) else None
    spaced = bool(found["before"] or found["after"])
    if spaced and "=" in op and not _begins_line(text, found.start()):
        return None
    value = _bare_value().match(text, start)
    end = value.end() if value else start
    if text[end : end + 1] in ("(", "[", "{"):
        return None  # a call or an element, in some program's text
    return end if end > start and is_secret(text[start:end], kind, code=True) else None


def _begins_line(text: str, at: int) -> bool:
    """Whether only blanks (few) stand before this place in its line."""
    before = text[max(0, at - _INDENT) : at].rstrip(" \t")
    return before[-1:] in ("", "\n")

"""Redact one word or program text: URLs, headers, NAME=VALUE, calls, SQL, .netrc, .pgpass.

Each search passes over the text once; quantifiers are bounded or possessive.
"""

from __future__ import annotations

import re
from functools import cache

from tracehint.schemas.redact.rules import CALLS, HEADERS, QUERY, READERS, REDACTED
from tracehint.schemas.redact.values import (
    Kind,
    hide_shapes,
    is_plain_word,
    is_random,
    is_secret,
    is_strange,
    kind_of_name,
)

_INDENT = 80
_CALL = 400  # characters of a call's arguments that are searched
_QUOTE = r"\\{0,3}[\"']"

# Other statements in program text; the group `secret` is redacted.
STATEMENTS: dict[str, str] = {
    "Authorization: SCHEME S":
        rf"(?i)\bauthorization(?:{_QUOTE})?\s{{0,2}}[:=]\s{{0,2}}(?:{_QUOTE})?"
        r"(?:[a-z][\w-]{1,30}\s{1,4})?(?P<secret>(?:<redacted>|[^'\"\s,;&<>\\]){1,4096}+)",
    "SQL: IDENTIFIED [WITH PLUGIN] BY 'S', PASSWORD [FOR USER =] ('S'), SECRET 'S'; -Password 'S'":
        r"(?i)(?:\bidentified\s{1,4}(?:with\s{1,4}\w{1,64}\s{1,4})?by\s{1,4}"
        r"|\bpassword\s{1,4}for\s{1,4}[^\s=]{1,160}+\s{0,4}=|\bpragma\s{1,4}(?:re)?key\s{0,4}="
        r"|(?<![\"'$])\b(?P<name>password|passwd|passphrase|secret|token|securestring)(?:\s{1,4}|(?=\()))"
        rf"\s{{0,4}}\(?\s{{0,2}}(?P<q>{_QUOTE})(?P<secret>[^'\"]{{1,400}}+)",
    ".netrc: login U password S":
        r"\b(?:login|account|machine)\s{1,4}\S{1,200}\s{1,4}password\s{1,4}(?P<secret>[^\s'\"]{1,400}+)",
    ".pgpass: HOST:PORT:DB:USER:S":
        r"(?<![^\s'\"])[\w.*-]{1,200}:(?:[0-9]{1,5}|\*):[\w.*-]{1,99}:[\w.*@-]{1,99}:"
        r"(?P<secret>[^\s'\":]{1,400}+)",
    "JDBC: jdbc:oracle:thin:U/S@":
        r"(?i)jdbc:oracle:\w{1,9}:[\w.$-]{1,99}/(?P<secret>[^\s@'\"]{1,400}+)(?=@)",
    "expect: expect \"password:\"; send \"S\"":
        rf"(?i)assw(?:or)?d[^'\";\n]{{0,40}}+(?:{_QUOTE})?[\s;{{}}]{{1,20}}send\s{{1,4}}(?:--\s{{1,4}})?"
        rf"(?:{_QUOTE})?(?P<secret>[^'\"\\\s]{{1,400}}+)",
    "curl: user = \"U:S\"":
        rf"(?:^|[\n'\"])-{{0,2}}(?:proxy-)?user\s{{0,4}}[=:]?\s{{0,4}}{_QUOTE}[\w.@-]{{1,99}}:"
        r"(?P<secret>[^\s'\"]{1,400}+)",
}  # fmt: skip  # a table
_SIGN = re.compile(r"""[=:@,('"\s<]""", re.ASCII)
_STATEMENT_WORD = re.compile("(?i)pass|auth|identified|secret|token|secur|key|user|:[0-9*]|oracle")


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
def _named_value_regex() -> re.Pattern[str]:
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
    """Redact secrets that are recognised by a name next to them or by their own shape."""
    text = hide_shapes(text)
    if not _SIGN.search(text):  # most words have none, and every rule below needs one
        return text
    if "://" in text:
        text = _url().sub(lambda m: _hide_userinfo(m[0]), text)
    if "@" in text and ":" in text:
        text = _bare_user().sub(lambda m: f"{m['user']}:{REDACTED}", text)
        text = text.replace(REDACTED + REDACTED, REDACTED)
    if _STATEMENT_WORD.search(text):
        for statement in _statements():
            text = statement.sub(_hide_group, text)
    if "(" in text:
        text = _hide_calls(text)
    if "</" in text:
        text = _element().sub(_hide_element, text)
    return _hide_named(text)


@cache
def _call() -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w.])(?P<name>[A-Za-z_][\w.]{0,99}+)\s?\(|\bauth\s{0,4}=\s{0,4}\(", re.ASCII
    )


@cache
def _argument() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<key>[=:]\s{{0,4}})?(?P<quote>{_QUOTE})(?P<text>[^'\"\\]{{0,400}}+)(?P=quote)",
        re.ASCII,
    )


def _hide_calls(text: str) -> str:
    """Redact the secret argument of `login("U", "S")`, `set_key("S")`, `auth=("U", "S")`."""
    out: list[str] = []
    done = 0
    for found in _call().finditer(text):
        number, kind = _secret_argument(found["name"])
        end = text.find(")", found.end(), found.end() + _CALL)
        if not kind or end < 0 or found.end() < done:
            continue
        quoted = [a for a in _argument().finditer(text, found.end(), end) if not a["key"]]
        if len(quoted) < abs(number):
            continue
        secret = quoted[number - 1 if number > 0 else number]
        if is_secret(secret["text"], kind):
            out += (text[done : secret.start("text")], REDACTED)
            done = secret.end("text")
    return "".join((*out, text[done:]))


def _secret_argument(name: str | None) -> tuple[int, Kind]:
    """Return which quoted argument of the call is secret, and its kind (empty: none)."""
    if name is None:
        return 2, "strong"  # auth=(
    short = name.rpartition(".")[2]
    number = CALLS.get(name.lower()) or CALLS.get(short.lower())
    if number:
        return number, "strong"
    verb = re.match(r"[A-Z]?[a-z]*", short)
    if verb and (verb[0].lower() in READERS or short.startswith("get")):
        return 0, ""
    return -1, kind_of_name(short)


def hide_header(word: str) -> str | None:
    """Redact `Name: value` of a header with a secret value; None: it is no such header."""
    name, colon, value = word.partition(":")
    name = name.strip()
    if not colon or len(name) > 80 or any(c.isspace() or c in "\"'={" for c in name):
        return None
    if name.lower() not in HEADERS and kind_of_name(name) in ("", "weak"):
        return None
    rest = value.lstrip()
    scheme, blank, credentials = rest.partition(" ")
    if not (blank and name.lower().endswith("authorization") and scheme.isascii()):
        scheme, credentials = "", rest
    if value.startswith(":"):
        return None
    kind = "strong" if name.lower() in HEADERS else kind_of_name(name)
    if kind == "mild" and is_plain_word(rest):
        return None
    if not is_secret(credentials.strip(), kind):
        return word if credentials == REDACTED or name.lower() in HEADERS else None
    lead = value[: len(value) - len(rest)]
    return f"{word[: word.index(':')]}:{lead}{scheme}{blank if scheme else ''}{REDACTED}"


def _hide_userinfo(rest: str) -> str:
    """Redact the text after `://`: the password, or a token in place of the user."""
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


@cache
def _element() -> re.Pattern[str]:
    return re.compile(
        r"<(?P<name>[A-Za-z][\w:.-]{0,99}+)[^<>]{0,200}+>(?P<secret>[^<>]{1,400}+)(?=</(?P=name)>)",
        re.ASCII,
    )


def _hide_element(found: re.Match[str]) -> str:
    """Redact `<password>S</password>`."""
    secret = found["secret"]
    hidden = is_secret(secret, kind_of_name(found["name"]))
    return found[0].removesuffix(secret) + REDACTED if hidden else found[0]


def _hide_group(found: re.Match[str]) -> str:
    secret = found["secret"]
    name = (found.groupdict().get("name") or "password").lower()
    if not is_secret(secret, kind_of_name(name)):
        return found[0]
    start = found.start("secret") - found.start()
    return found[0][:start] + REDACTED + found[0][start + len(secret) :]


def _hide_named(text: str) -> str:
    """Redact NAME=VALUE, "name": "value", name: value, name <- "value" anywhere in the text."""
    out: list[str] = []
    done = at = 0
    search = _named_value_regex().search
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
    """Return the end of the secret that begins at the match's end; None: it is no secret."""
    name, op = found["name"], found["op"]
    kind = kind_of_name(name)
    if not kind and name.lower().lstrip("-") in QUERY and "=" in op:
        kind = "made" if text[found.start() - 1 : found.start()] in ("?", "&") else "weak"
    start = found.end()
    quote = found["quote"]
    if not kind:
        return None
    if op.strip().endswith(",") and not name.isupper():  # 'Password', 'S' of MATLAB
        end = text.find(quote or "'", start)
        return end if is_strange(text[start:end]) and not kind_of_name(text[start:end]) else None
    spaced = bool(found["before"] or found["after"])
    if quote:
        if op[0] not in "\\\"'" and text[found.start() - 1 : found.start()] == quote:
            return None  # "password:" by itself: the quote ends there
        end = text.find(quote.lstrip("bfru"), start)
        plain = kind == "mild" and spaced and is_plain_word(text[start:end])
        return end if end > start and not plain and is_secret(text[start:end], kind) else None
    if spaced and "=" in op and not _begins_line(text, found.start()):
        return None
    value = _bare_value().match(text, start)
    end = value.end() if value else start
    if text[end : end + 1] in ("(", "[", "{"):
        return None  # a call or an element, in some program's text
    plain = kind == "mild" and spaced and is_plain_word(text[start:end])
    return (
        end if not plain and end > start and is_secret(text[start:end], kind, code=True) else None
    )


def _begins_line(text: str, at: int) -> bool:
    """Whether only blanks precede this position in its line; _INDENT characters are examined."""
    before = text[max(0, at - _INDENT) : at].rstrip(" \t")
    return before[-1:] in ("", "\n")

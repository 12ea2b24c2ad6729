"""Classify names of secrets, values that may be secrets, and values that look random.

Also the cheap first check: a text without any literal of the rules is left unchanged.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal

from tracehint.schemas.commandline.shelltext import word_set
from tracehint.schemas.redact.rules import (
    ABOUT,
    ABOUT_BARE_KEY,
    ABOUT_KEY,
    CALLS,
    ENDINGS,
    FLAGS,
    KEY_OF,
    KEY_OF_ENDINGS,
    MADE,
    MILD,
    NO_KEY_OF,
    NO_PASS,
    PASS_OF,
    PLACES,
    PRINTING,
    PROGRAMS,
    REDACTED,
    SHAPES,
    STDIN_READERS,
    STRONG,
)

# Names of secrets. strong: always. mild: unless the value is a number, a kind (PASS=RECO) or, in a
# sentence, a plain word. made: unless it is a number or word. weak: only if the value is random
# (KEY, AUTH). Empty: not the name of a secret.
Kind = Literal["", "weak", "made", "mild", "strong"]

_PARTS = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|[A-Z]|[0-9]+")
_LONGEST = 160  # characters of a name
# $X, ${X}, ${X%.*}, $1, $(cat f), `cat f`, {wildcard}, {{ x }}, %s, <placeholder>, ***
_REFERENCE = re.compile(
    r"\$(?:[A-Za-z_]\w{0,99}|[0-9#@*?]|\{\w{1,99}(?:[#%/^,@\[][^}]{0,200})?\}|\(.*\)?)|`.*"
    r"|\{\{?[\s\w.:\[\]]{0,99}\}?\}|%[a-z]|%\(\w{0,99}\)s|</?[\w -]{1,40}>|\*{2,99}|\.{3}"
    r"|\.[a-z_]\w{0,99}|\.[*+].*|\\[A-Za-z].*|\[\^?.{0,99}\][*+]?|<\(.*",  # jq, regular expressions
    re.DOTALL | re.ASCII,
)
_WORDS = word_set("true false yes no none null nil auto ask prompt stdin on off env default")
_FILE = re.compile(
    r"[\w./~+@-]{0,400}\.(?:json|txt|pass|pwd?|pem|key|crt|cer|ya?ml|ini|cfg|conf|cnf|csv|tsv|env|toml|xml|p12"
    r"|pfx|jks|enc|gpg|asc|ngc|ppk|netrc|token|jwt|keytab|fa|fq|fasta|fastq|gz|bam|bed|vcf|tbl|py|R"
    r"|sh|sql|html?|parquet|h5|nc|tif|pdf|rar|zip|7z|tar)",
    re.IGNORECASE | re.ASCII,
)
_PATH = re.compile(r"(?:~|\.\.?)?(?:/[\w.+@-]{0,200})+|@.{1,400}|\.", re.ASCII)
_HOST = re.compile(
    r"[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,6}(?::[0-9]{1,5})?(?:/.{0,400})?", re.ASCII
)
_NUMBER = re.compile(r"[+-]?[0-9]{0,5}(?:\.[0-9]{0,9})?(?:e-?[0-9]{1,3})?")
_CODE = re.compile(
    r"[\w.$]{0,200}[(\[].*|lambda\b.*|[\w.]{0,100}\$\w.*|[\w]{1,100}\.[A-Za-z_]\w{0,100}(?:\.\w{1,100}){0,5}",
    re.ASCII,
)
# Identifiers of science and of software: accessions, variants, regions, assemblies, versions,
# dates, sizes, digests of containers. They are not secrets after ordinary names.
_IDENTIFIER = re.compile(
    r"[A-Z]{1,6}_?[0-9]{3,14}(?:\.[0-9]{1,3})?|[A-Z]{3}[0-9]{2,3}-[A-Z0-9-]{2,40}"
    r"|(?:rs|ss|cg|COSV|EFO_|GO:|HP:|CHEBI:|chr|scaffold|contig|tx|T|ENS[A-Z]{0,6})_?[0-9XYMT]{1,14}"
    r"(?:[_:.-][\w.:-]{0,60})?|(?:hg|mm|rn|dm|ce|GRC[a-z]|T2T|CHM|build|release|python|py|cu|v)"
    r"[0-9][\w.-]{0,30}|[\w.-]{1,60}=?=[0-9][\w.]{0,60}|sha(?:1|256|512):[0-9a-f]{7,128}"
    r"|[0-9]{4}-?[0-9]{2}-?[0-9]{2}(?:T[0-9:.Z+-]{0,20})?|[0-9.]{1,20}[kKMGTPbBxX][bB]?"
    r"|[A-Z]{14}-[A-Z]{10}-[A-Z]|[ACGTUN]{8,4000}|[A-Z*]{20,4000}",
    re.ASCII,
)
_RUN = re.compile(r"[A-Za-z0-9+_=.~:-]{16,4096}", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{32,128}")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# A run of letters and digits in a text; Snakemake passes values to its jobs as `base64//...`.
_CANDIDATE = re.compile(r"(?<![A-Za-z0-9])(?<!base64//)[A-Za-z0-9]{20,4096}+", re.ASCII)
_MIXED = r"(?-i:(?:[A-Z]{1,9}[a-z0-9]{1,9}){3})"  # in each candidate; also valid in RE2
_CONTENT = re.compile(r"Qm[1-9A-HJ-NP-Za-km-z]{44}|baf[a-z2-7]{50,}")  # a name derived from content
_ENTROPY = 3.2  # bits per character
_MARKS = "#<>[]{}@|_*"  # around tokens of a text: `##ing`, `[MASK]`
_SMALL_LETTERS = re.compile("[a-z]{3,}")


@lru_cache(maxsize=4096)
def kind_of_name(name: str) -> Kind:
    """Classify the value of an option, variable or setting by its name."""
    if len(name) > _LONGEST:
        name = name[-_LONGEST:]
    parts = [p for p in parts_of(name) if not p.isdigit()]
    for at in range(len(parts) - 1, -1, -1):
        kind = _kind_of_part(parts, at, variable=name.isupper())
        if kind:
            about = ABOUT | ABOUT_KEY if parts[at] in ("key", "token", "pass") else ABOUT
            about = about | ABOUT_BARE_KEY if parts[at] == "key" else about
            behind = parts[at + 1 :]
            return (
                ""
                if about.intersection((*behind, *(p.removesuffix("s") for p in behind)))
                else kind
            )
    return ""


def parts_of(name: str) -> list[str]:
    """Return the words of a name, equal for `dbPassword`, `DB_PASSWORD` and `--db-password`."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    if parts[-2:] == ["pass", "word"]:
        parts[-2:] = ["password"]
    return [word for part in parts for word in _split(part)]


def _split(part: str) -> tuple[str, ...]:
    """Split `passwordeval` into `password` and `eval`."""
    for word in ENDINGS:
        if part.startswith(word) and part[len(word) :] in ABOUT | PRINTING:
            return word, part[len(word) :]
    return (part,)


def _kind_of_part(parts: list[str], at: int, *, variable: bool) -> Kind:
    part, before = parts[at], parts[:at]
    if part == "key":
        if before and before[-1] in NO_KEY_OF:
            return ""
        secret = KEY_OF.intersection(before) or (before and before[-1].endswith(KEY_OF_ENDINGS))
        return "strong" if secret else "weak"
    if part == "bearer":
        return "weak"
    if part == "code":  # authorization_code; other codes are not secret
        return "strong" if before[-1:] in (["authorization"], ["auth"], ["recovery"]) else ""
    if part == "auth":
        return "made" if before and (variable or before[0] == "x") else "weak"
    if part in STRONG:
        counted = before and before[-1] in ("max", "min", "num", "n")
        other = part == "pass" and before and before[-1] in PASS_OF
        if counted or other:
            return ""
        if part in MADE:
            return "mild" if variable else "made"
        return "mild" if part in MILD else "strong"
    if part.endswith(ENDINGS) or (part.endswith("pass") and part not in NO_PASS):
        return "strong"
    return ""


def is_flag(name: str) -> bool:
    """Whether an option of this name takes no value (`--no-password`)."""
    return bool(FLAGS.intersection(p.lower() for p in _PARTS.findall(name)[:1]))


def is_secret(value: str, kind: Kind, *, code: bool = False) -> bool:
    """Whether the value of a name of this kind must be redacted.

    code: the value is unquoted in a program's text, where it may be an expression.
    """
    if not value or not kind or value == REDACTED or _REFERENCE.fullmatch(value):
        return False
    if value.lower() in _WORDS or value.startswith(PLACES):
        return False
    if kind == "made" and (not (bare := value.strip(_MARKS)) or _is_word(bare)):
        return False
    if kind in ("made", "mild") and value.isalpha() and value.isupper():
        return False
    if _NUMBER.fullmatch(value) and (kind != "strong" or len(value) < 3):
        return False
    if _is_place(value) or (code and _CODE.fullmatch(value)):
        return False
    if kind == "weak":
        return is_random(value)
    return True


def is_plain_word(value: str) -> bool:
    """Whether it has lower-case letters only: `token: done`, `token = 'gene'` in program text."""
    return value.isascii() and value.isalpha() and value.islower()


def _is_word(value: str) -> bool:
    return value.isalpha() and (value.islower() or value[1:].islower())


def is_strange(value: str) -> bool:
    """Whether a value in a secret's position is no plain word, number, host or identifier."""
    if len(value) < 4 or any(c.isspace() for c in value) or not is_secret(value, "strong"):
        return False
    if _IDENTIFIER.fullmatch(value) or _HOST.fullmatch(value) or "://" in value:
        return False
    if value[0] == "-" or any(c in "=,/:" for c in value.rstrip("=")) or _NUMBER.fullmatch(value):
        return is_random(value)
    letters = any(map(str.islower, value)) + any(map(str.isupper, value[1:]))
    return letters + any(map(str.isdigit, value)) + any(c in "!#$%^&*?~" for c in value) > 1


def is_random(text: str) -> bool:
    """Whether the text looks random: letters and digits without an order."""
    body = _ESCAPE.sub("+", text).rstrip("+=")
    if not _RUN.fullmatch(body) or _IDENTIFIER.fullmatch(text):
        return False
    if _UUID.search(body) or _HEX.fullmatch(body):
        return True
    chunk = max(re.split(r"[:._~-]", body), key=len)
    digits = sum(map(str.isdigit, chunk))
    if len(chunk) < 14 or digits < 2 or len(chunk) - digits < 3:
        return False
    return _changes(chunk) >= 0.22 * len(chunk) and _entropy(chunk) >= 2.8


def _is_token(run: str) -> bool:
    """As is_random, for any run in a text: three kinds of characters that change often. Names in
    camel case consist mostly of runs of lower-case letters."""
    kinds = any(map(str.isdigit, run)) and any(map(str.islower, run))
    if not kinds or not re.search(_MIXED, run) or _CONTENT.fullmatch(run):
        return False
    if sum(map(len, _SMALL_LETTERS.findall(run))) > len(run) / 2:
        return False
    return _changes(run) >= 0.38 * (len(run) - 1) and _entropy(run) >= _ENTROPY


def _changes(text: str) -> int:
    """Count the changes between lower-case letters, capitals and digits."""
    kinds = [c.isdigit() + 2 * c.isupper() for c in text]
    return sum(a != b for a, b in pairwise(kinds))


def _entropy(text: str) -> float:
    """Return the entropy in bits per character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _is_place(value: str) -> bool:
    """Whether the value is a file name."""
    if _FILE.fullmatch(value):
        return True
    return _PATH.fullmatch(value) is not None and not any(map(is_random, value.split("/")))


def hide_shapes(text: str) -> str:
    """Redact every token in the text: of a known shape, or of mixed letters and digits."""
    if len(text) < 16:
        return text
    for literals, pattern in _compile_shapes():
        if any(literal in text for literal in literals):
            text = pattern.sub(_redact_match, text)
    return _CANDIDATE.sub(lambda m: REDACTED if _is_token(m[0]) else m[0], text)


@cache
def _compile_shapes() -> tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]:
    return tuple(
        (tuple(s.literals.split("|")), re.compile(s.pattern, re.DOTALL | re.ASCII)) for s in SHAPES
    )


def _redact_match(found: re.Match[str]) -> str:
    return (found.groupdict().get("keep") or "") + REDACTED


# --- the first check ----------------------------------------------------------------------------
# Parts of names, and of the patterns in text.py. Lower case; compared without regard to case.
_BEGINNINGS = (
    "pass", "pwd", "pw", "secret", "token", "key", "cred", "auth", "jwt", "bearer", "psk", "otp",
    "cookie", "sessionid", "sas", "sig", "identified", "connect", "login", "secure", "kv put",
    "jdbc:oracle", "register", "unlock",
)  # fmt: skip  # a table
_PGPASS = r"\w:[0-9*]{1,5}:[^:]{0,99}:[^:]{0,99}:"
_TEXTS = re.compile(rf"{_PGPASS}|{_MIXED}")
# `-u USER -p SECRET`: a command matches both, in any of its words.
PAIR = (
    r"(?i)(?:^|\s)-{1,2}(?:u|user|username|login)(?:$|[\s=])",
    r"(?i)(?:^|\s)-[pw](?:$|\s|[^-\s])",
)


@cache
def literals() -> tuple[str, ...]:
    """Return texts of which every command with a named or shaped secret contains at least one."""
    found = {*_BEGINNINGS, *(text.lower() for s in SHAPES for text in s.literals.split("|"))}
    found |= {name.rpartition(".")[2] for name in CALLS}
    return tuple(t for t in sorted(found) if not any(o in t for o in found - {t}))


@cache
def suspicious_programs() -> frozenset[str]:
    """Return the programs with secret options or arguments, in lower case."""
    named = {*(key.split()[0] for key in PROGRAMS), *STDIN_READERS} - {"*"}
    return frozenset(name.lower() for name in named)


@cache
def suspicion() -> str:
    """Return the first check as a regular expression for RE2 (Arrow), with case ignored."""
    names = "|".join(re.escape(name) for name in sorted(suspicious_programs()))
    texts = "|".join(re.escape(text) for text in literals())
    programs = rf"(?:^|[^\w.-])(?:{names})(?:$|[^\w.-])"
    return rf"(?s){texts}|{programs}|:.*@|{_PGPASS}|{_MIXED}"


def is_suspicious(text: str) -> bool:
    """Whether the text may contain a secret."""
    lower = text.lower()
    if any(literal in lower for literal in literals()):
        return True
    if -1 < lower.find(":") < lower.rfind("@") or _TEXTS.search(text):
        return True
    if all(re.search(part, text.replace("\0", " ")) for part in PAIR):
        return True
    return not suspicious_programs().isdisjoint(re.findall(r"[\w.-]+", lower, re.ASCII))

"""Secrets in arguments: found by the option's name, the variable's name, or their own shape.

What is redacted is replaced by `<redacted>`; the rest of the argument stays, so
that a command can still be recognised. Ordinary file names are never touched:
an option that names a *file* with a secret (`--password-file x`) keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

REDACTED = b"<redacted>"

_WORDS = (
    rb"(?:password|passwd|passphrase|passcode|secret|token|api[-_]?key|access[-_]?key"
    rb"|secret[-_]?key|auth[-_]?key|credentials?)"
)
# --password, --db-password, -password, --aws_secret_access_key; not --token-file, --tokenizer
_OPTION_NAME = rb"--?(?:[a-z0-9]+[-_])*" + _WORDS
_OPTION = re.compile(rb"(" + _OPTION_NAME + rb")(=(.*))?", re.IGNORECASE | re.DOTALL)
# PGPASSWORD=, AWS_SECRET_ACCESS_KEY=, TOKEN=, MYSQL_PWD=; not PWD=, TOKENIZERS_PARALLELISM=
_VARIABLE_NAME = rb"(?:(?:[A-Za-z0-9]+_)*(?:PG|DB)?" + _WORDS + rb"(?:_[0-9]+)?|(?:[A-Z0-9]+_)+PWD)"
_VARIABLE = re.compile(rb"(" + _VARIABLE_NAME + rb")=(.+)", re.IGNORECASE | re.DOTALL)
_QUOTED = rb"(\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s'\";&|]+)"
_OPTION_TEXT = re.compile(rb"(?<!\S)(" + _OPTION_NAME + rb")(=|\s+)(?!-)" + _QUOTED, re.IGNORECASE)
_VARIABLE_TEXT = re.compile(rb"(?<![\w-])(" + _VARIABLE_NAME + rb")(=)" + _QUOTED, re.IGNORECASE)

# Shapes that are secrets wherever they stand; group 1, where there is one, is kept.
_SHAPES: tuple[re.Pattern[bytes], ...] = tuple(
    re.compile(p, re.DOTALL)
    for p in (
        rb"()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
        rb"(\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@'\"]{0,256}:)[^\s/@'\"]{1,4096}(?=@)",
        rb"(?i)((?:authorization|proxy-authorization|x-api-key|x-auth-token|private-token)\s*:\s*"
        rb"(?:(?:bearer|basic|token)\s+)?+)[^\s'\"<]+",
        rb"(?i)(\bbearer\s+)(?=[A-Za-z0-9._~+/-]*[0-9])[A-Za-z0-9._~+/-]{12,}=*",
        rb"(?i)([?&](?:access_token|token|sig|signature|x-amz-signature|api_?key|password)=)[^&\s'\"]+",
        rb"()\b(?:gh[opsur]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20,})",
        rb"()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        rb"()\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        rb"()\bxox[abprs]-[A-Za-z0-9-]{10,}",
        rb"()\bAIza[0-9A-Za-z_-]{35}\b",
        rb"()\bsk-(?:proj-|ant-)?(?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{20,}",
    )
)

_MYSQL = (rb"-p",)
# program -> options whose value is a secret, attached (`-pX`) or as the next argument
_ATTACHED: dict[bytes, tuple[bytes, ...]] = {
    b"mysql": _MYSQL, b"mysqldump": _MYSQL, b"mysqladmin": _MYSQL, b"mysqlimport": _MYSQL,
    b"mariadb": _MYSQL, b"mariadb-dump": _MYSQL, b"7z": _MYSQL, b"7za": _MYSQL,
    b"sshpass": _MYSQL, b"unzip": (b"-P",), b"zip": (b"-P",),
}  # fmt: skip  # a table
_SEPARATE: dict[bytes, tuple[bytes, ...]] = {
    b"sshpass": (b"-p",), b"unzip": (b"-P",), b"zip": (b"-P",), b"ldapsearch": (b"-w",),
    b"ldapmodify": (b"-w",), b"redis-cli": (b"-a",), b"curl": (b"-u", b"--user", b"-U"),
    b"docker": (b"-p",), b"podman": (b"-p",), b"openssl": (b"-passin", b"-passout", b"-k", b"-K"),
    b"smbclient": (b"-U",), b"sqlplus": (), b"ipmitool": (b"-P",), b"iinit": (),
}  # fmt: skip  # a table
_USER_PASSWORD = re.compile(rb"([^:%\s]+[:%])(.+)", re.DOTALL)
_KEEP_USER = (b"curl", b"smbclient")


def redact_text(text: bytes) -> tuple[bytes, int]:
    """Command text (`sh -c "..."`) or one argument without its secrets, and how many there were."""
    hits = 0
    for shape in _SHAPES:
        text, n = shape.subn(rb"\1" + REDACTED, text)
        hits += n

    def keep_name(found: re.Match[bytes]) -> bytes:
        nonlocal hits
        value = found[3]
        if REDACTED in value or value in (b'""', b"''") or value[:1] == b"$":
            return found[0]  # done already, empty, or a variable's name and not its value
        hits += 1
        return found[1] + found[2] + REDACTED

    if re.search(rb"\s", text):
        text = _OPTION_TEXT.sub(keep_name, text)
    return _VARIABLE_TEXT.sub(keep_name, text), hits


def redact_argv(argv: Sequence[bytes]) -> tuple[list[bytes], int]:
    """The arguments without secrets, and how many values were replaced."""
    out: list[bytes] = []
    hits = 0
    program = argv[0].rpartition(b"/")[2] if argv else b""
    secret_next = False
    for i, arg in enumerate(argv):
        if arg and i > 0 and program in (b"env", b"sudo", b"nohup", b"time") and _is_name(arg):
            program = arg.rpartition(b"/")[2]
        if secret_next:
            secret_next = False
            if arg and arg[:1] != b"-":
                out.append(_value(program, arg))
                hits += 1
                continue
        new, n = _one(program, arg) if i else (arg, 0)
        out.append(new)
        hits += n
        secret_next = n == 0 and _announces(program, arg, i)
    return out, hits


def _is_name(arg: bytes) -> bool:
    return arg[:1] != b"-" and b"=" not in arg


def _announces(program: bytes, arg: bytes, index: int) -> bool:
    """Whether the next argument is a secret."""
    if index == 0:
        return False
    if arg in _SEPARATE.get(program, ()):
        return True
    found = _OPTION.fullmatch(arg)
    return found is not None and found[2] is None


def _value(program: bytes, arg: bytes) -> bytes:
    if program in _KEEP_USER:
        found = _USER_PASSWORD.fullmatch(arg)
        return found[1] + REDACTED if found else arg
    return REDACTED


def _one(program: bytes, arg: bytes) -> tuple[bytes, int]:
    """One argument by itself."""
    found = _OPTION.fullmatch(arg)
    if found is not None and found[3]:
        return found[1] + b"=" + REDACTED, 1
    found = _VARIABLE.fullmatch(arg)
    if found is not None and not re.search(rb"\s", arg):
        return found[1] + b"=" + REDACTED, 1
    for option in _ATTACHED.get(program, ()):
        if arg.startswith(option) and len(arg) > len(option):
            return option + REDACTED, 1
    return redact_text(arg)

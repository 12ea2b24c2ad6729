"""Secrets in arguments are redacted; ordinary names are unchanged."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.hostile import HOSTILE_NAMES
from tracehint.schemas.redact.commands import redact_argv, redact_text
from tracehint.schemas.redact.rules import REDACTED

S = "S3cr3tValue"


@pytest.mark.parametrize(
    "argv",
    [
        ["tool", "--password", S],
        ["tool", f"--password={S}"],
        ["tool", "-password", S],
        ["tool", "--db-password", S],
        ["tool", f"--api-key={S}", "in.txt"],
        ["tool", "--auth_token", S],
        ["tool", "--aws-secret-access-key", S],
        ["env", f"AWS_SECRET_ACCESS_KEY={S}", "aws"],
        ["env", f"PGPASSWORD={S}", "psql"],
        ["env", f"MYSQL_PWD={S}"],
        ["env", f"TOKEN={S}"],
        ["env", f"GITHUB_TOKEN_2={S}", "x"],
        ["mysql", "-u", "root", f"-p{S}", "db"],
        ["/usr/bin/mysqldump", f"-p{S}"],
        ["env", "LC_ALL=C", "mysql", f"-p{S}"],
        ["sshpass", "-p", S, "ssh", "host"],
        ["sshpass", f"-p{S}", "ssh", "host"],
        ["curl", "-u", f"user:{S}", "https://x/"],
        ["curl", "--user", f"user:{S}"],
        ["curl", "-H", f"Authorization: Bearer {S}"],
        ["curl", "-H", f"X-Api-Key: {S}"],
        ["curl", f"https://user:{S}@host/path"],
        ["git", "clone", f"https://oauth2:{S}@host/x.git"],
        ["wget", f"https://h/x?access_token={S}&b=1"],
        ["redis-cli", "-a", S],
        ["openssl", "enc", "-passin", f"pass:{S}"],
        ["unzip", "-P", S, "a.zip"],
        ["docker", "login", "-p", S],
        ["sh", "-c", f"tool --password {S} in > out"],
        ["sh", "-c", f"tool --password='{S} x' in"],
        ["sh", "-c", f'export DB_PASSWORD="{S}"; run'],
        ["sh", "-c", f"SECRET_TOKEN={S} run; curl -H 'Authorization: Bearer {S}' u"],
    ],
)
def test_secrets_are_replaced(argv: list[str]) -> None:
    out, hits = redact_argv([a.encode() for a in argv])
    assert hits >= 1
    assert S.encode() not in b" ".join(out)
    assert len(out) == len(argv)
    assert out[0] == argv[0].encode()
    assert redact_argv(out)[0] == out  # redaction is idempotent


@pytest.mark.parametrize(
    "value",
    [
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2c3D4e5" * 3,
        "glpat-" + "a1B2c" * 4,
        "AKIA" + "ABCD1234EFGH5678",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-DEF_123",
        "xoxb-123456789012-abcdef",
        "AIza" + "a1B2c3D" * 5,
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_known_shapes_are_found_anywhere(value: str) -> None:
    for argv in (["x", value], ["x", f"--file={value}"], ["sh", "-c", f"echo {value} > f"]):
        out, hits = redact_argv([a.encode() for a in argv])
        assert hits >= 1, argv
        assert value.encode() not in b" ".join(out)


@pytest.mark.parametrize(
    "argv",
    [
        ["mProject", "-X", "raw/2mass-atlas-990502s-j1440186.fits", "p.fits", "region.hdr"],
        ["make", "-j4", "CFLAGS=-O2", "PREFIX=/usr/local", "PWD=/home/u"],
        ["cp", "secret.txt", "passwords.csv", "token.json"],
        ["tool", "--password-file", "pw.txt", "--token-path=/x/y", "--tokenizer", "bert"],
        ["env", "TOKENIZERS_PARALLELISM=false", "PWD=/x", "OLDPWD=/y", "KEYS=a"],
        ["ffmpeg", "-pass", "1", "-passlogfile", "x"],
        ["mkdir", "-p", "a/b/c"],
        ["cp", "-pr", "a", "b"],
        ["sort", "-k", "2", "--key=1"],
        ["python", "train.py", "--max-tokens", "128", "--secretary", "bob"],
        ["rsync", "user@host:/path", "."],
        ["curl", "https://host:8080/path@2x.png"],
        ["tar", "-cf", "bearer-tokens.tar", "dir"],
        ["grep", "password", "config.ini"],
        ["tool", "--no-password", "-x", "file"],
        ["echo", "--password"],
        ["sh", "-c", "export TOKEN=$OTHER; use --password $PW"],
        ["7za", "a", "out.7z", "in"],
        ["git", "commit", "-m", "bearer of news arrived"],
    ],
)
def test_ordinary_arguments_are_left_alone(argv: list[str]) -> None:
    raw = [a.encode() for a in argv]
    assert redact_argv(raw) == (raw, 0)


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_hostile_names_are_no_secrets(name: bytes) -> None:
    argv = [b"cat", b"--", name, b"data/" + name]
    assert redact_argv(argv) == (argv, 0)


_WORD = st.text(string.ascii_letters + string.digits + "._/-", min_size=1, max_size=30).map(
    lambda s: s.encode()
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=8))
def test_any_arguments_keep_their_number_and_nothing_is_raised(argv: list[bytes]) -> None:
    out, hits = redact_argv(argv)
    assert len(out) == len(argv)
    assert hits == 0 or out != argv
    again, _ = redact_argv(out)
    assert len(again) == len(out)


@settings(max_examples=60, deadline=None)
@given(st.lists(_WORD, min_size=1, max_size=5), _WORD, st.integers(0, 4))
def test_a_password_option_is_found_at_any_place(
    words: list[bytes], secret: bytes, where: int
) -> None:
    if secret.startswith(b"-") or len(secret) < 3:
        secret = b"xyz" + secret
    marked = b"Q9z" + secret + b"_9"  # not a file extension: file names are not redacted
    argv = [b"prog", *words]
    at = 1 + where % (len(argv))
    argv[at:at] = [b"--password", marked]
    out, _ = redact_argv(argv)
    assert out[at + 1] == REDACTED.encode() or out[at] != b"--password"
    assert marked not in out[at + 1 : at + 2]


@settings(max_examples=60, deadline=None)
@given(st.lists(_WORD.map(lambda word: word[:18]), min_size=1, max_size=8))  # shorter than tokens
def test_plain_command_text_is_left_alone(words: list[bytes]) -> None:
    text = b" ".join(b"w" + word for word in words)  # neither options nor known programs
    assert redact_text(text) == (text, 0)


def test_random_letters_and_digits_are_tokens_anywhere() -> None:
    rnd = random.Random(29)
    alphabet = (string.ascii_letters + string.digits).encode()
    tokens = [bytes(rnd.choices(alphabet, k=40)) for _ in range(2000)]
    kept = [token for token in tokens if redact_argv([b"x", b"in/" + token + b".txt"])[1] == 0]
    assert len(kept) <= 20, kept[:5]


@pytest.mark.parametrize(
    "word",
    [
        "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
        "/work/3f/a1b2c3d4e5f60718293a4b5c6d7e8f/.command.sh",
        "6e811713-17b0-4413-a756-af178269824a",
        "org.broadinstitute.hellbender.tools.walkers.GenotypeGVCFs2Test",
        "MarkDuplicatesWithMateCigar3SparkUnitTest",
        "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQ",
        "ACGTACGTTAGCCTAGGATTACAGATTACA",
        "S2A_MSIL2A_20230612T101601_N0509_R065_T32UQD_20230612T161604.SAFE",
        "base64//dG1wZGlyPXN5c3RlbV90bXBkaXIsbWVtX21iPTEwMDA=",
        "--key=ENSG00000186092",
        "key=chr1_12345",
        "samtools-1.17-hd87286a_1",
    ],
)
def test_names_and_digests_of_science_are_no_tokens(word: str) -> None:
    assert redact_argv([b"x", word.encode()]) == ([b"x", word.encode()], 0)


@pytest.mark.slow
def test_long_arguments_are_quick() -> None:
    """No pattern may need quadratic time: arguments are untrusted input."""
    import time

    for piece in (b"a", b"://", b"bearer ", b"eyJ", b"_a", b"--a-", b"=", b" x=", b"'", b"x:"):
        text = piece * (120_000 // len(piece))
        began = time.process_time()
        redact_argv([b"sh", b"-c", text])
        redact_argv([b"x", text])
        assert time.process_time() - began < 120, piece  # backtracking would take hours


@pytest.mark.parametrize(
    "text",
    [
        f"if true; then PASSWORD={S} run; fi",
        f"(cd x && TOKEN={S} ./r)",
        f"a=$(curl -u u:{S} https://x)",
        f"echo `curl -u u:{S} https://x`",
        f"MY_SECRET='{S}'\"{S}\" cmd",
        f"cmd --password \\\n {S}",
        f'ssh h "sh -c \\"mysql -p{S} x\\""',
        f"setenv DB_PASSWORD {S}",
        f"docker login docker login -p {S}",
    ],
)
def test_shell_text_of_any_form_is_read(text: str) -> None:
    new, hits = redact_text(text.encode())
    assert hits
    assert S.encode() not in new

"""600 commands: nearly all secrets go, nearly all that is harmless stays."""

from __future__ import annotations

import pytest

from tests.redact.corpus import KINDS, Case, cases
from tracehint.schemas.redact.commands import redact_argv, redact_text
from tracehint.schemas.redact.suspicion import is_suspicious, pattern


def as_text(case: Case) -> str:
    return redact_text(case.text.encode())[0].decode()


def leaks(case: Case) -> bool:
    out = as_text(case)
    return any(secret in out for secret in case.secrets)


def touched(case: Case) -> bool:
    argv = case.argv()
    return as_text(case) != case.text or (argv is not None and redact_argv(argv)[0] != argv)


def test_the_corpora_are_large_and_marked() -> None:
    secret = [case for kind in KINDS for case in cases(f"secret_{kind}")]
    harmless = [case for kind in KINDS for case in cases(f"harmless_{kind}")]
    assert len(secret) >= 300
    assert len(harmless) >= 300
    assert all(case.secrets and all(case.secrets) for case in secret)
    assert not any(case.secrets for case in harmless)
    assert len({case.text for case in secret + harmless}) == len(secret + harmless)


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_are_gone(kind: str) -> None:
    every = cases(f"secret_{kind}")
    leaking = [case.text for case in every if leaks(case)]
    assert len(leaking) <= 0.05 * len(every), leaking


@pytest.mark.parametrize("kind", KINDS)
def test_harmless_commands_stay_as_they_are(kind: str) -> None:
    every = cases(f"harmless_{kind}")
    changed = [case.text for case in every if touched(case)]
    assert len(changed) <= 0.02 * len(every), changed


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_redacted_stays_as_it_is(kind: str) -> None:
    for case in cases(f"secret_{kind}"):
        once = as_text(case)
        assert redact_text(once.encode()) == (once.encode(), 0), case.text


@pytest.mark.parametrize("kind", KINDS)
def test_words_that_a_program_gets_are_redacted_as_their_text(kind: str) -> None:
    """Of a recorded program the words are known; what the shell itself reads is not among them."""
    every = [(case, case.argv()) for case in cases(f"secret_{kind}")]
    known = [(case, argv) for case, argv in every if argv and not set("|<\n") & set(case.text)]
    assert len(known) > 120
    leaking = [
        case.text
        for case, argv in known
        if any(secret in b" ".join(redact_argv(argv)[0]).decode() for secret in case.secrets)
    ]
    assert len(leaking) <= 0.05 * len(known), leaking


@pytest.mark.parametrize("kind", KINDS)
def test_the_cheap_question_misses_nothing(kind: str) -> None:
    """Arrow and Python ask it in two ways; what neither suspects is not looked at."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for case in cases(f"secret_{kind}"):
        assert is_suspicious(case.text)
        found = pc.match_substring_regex(
            pa.array([case.text.encode()]), pattern(), ignore_case=True
        )
        assert found[0].as_py(), case.text

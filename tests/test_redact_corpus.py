"""2,900 commands: nearly all secrets are redacted, nearly all harmless text is unchanged."""

from __future__ import annotations

import pytest

from tests.redact.corpus import KINDS, Case, cases
from tracehint.schemas.redact.commands import redact_argv, redact_text
from tracehint.schemas.redact.tables import _suspicious
from tracehint.schemas.redact.values import is_suspicious


def as_text(case: Case) -> str:
    return redact_text(case.text.encode())[0].decode()


def leaks(case: Case) -> bool:
    out = as_text(case)
    return any(secret in out for secret in case.secrets)


def touched(case: Case) -> bool:
    argv = case.argv()
    return as_text(case) != case.text or (argv is not None and redact_argv(argv)[0] != argv)


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_are_gone(kind: str) -> None:
    every = cases(f"secret_{kind}")
    leaking = [case.text for case in every if leaks(case)]
    assert len(leaking) <= 0.03 * len(every), leaking


@pytest.mark.parametrize("kind", KINDS)
def test_harmless_commands_stay_as_they_are(kind: str) -> None:
    every = cases(f"harmless_{kind}")
    changed = [case.text for case in every if touched(case)]
    assert len(changed) <= 0.03 * len(every), changed


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_redacted_stays_as_it_is(kind: str) -> None:
    for case in cases(f"secret_{kind}"):
        once = as_text(case)
        assert redact_text(once.encode()) == (once.encode(), 0), case.text


@pytest.mark.parametrize("kind", KINDS)
def test_words_that_a_program_gets_are_redacted_as_their_text(kind: str) -> None:
    """The words of a recorded program are known, without the redirections that the shell parses."""
    every = [(case, case.argv()) for case in cases(f"secret_{kind}")]
    known = [(case, argv) for case, argv in every if argv and not set("|<\n") & set(case.text)]
    assert len(known) > 60
    leaking = [
        case.text
        for case, argv in known
        if any(secret in b" ".join(redact_argv(argv)[0]).decode() for secret in case.secrets)
    ]
    assert len(leaking) <= 0.03 * len(known), leaking


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_question_is_the_same_in_arrow_and_python(kind: str) -> None:
    """Commands that neither check suspects are not redacted: few of them contain a secret."""
    import pyarrow as pa

    every = cases(f"secret_{kind}")
    suspected = [case for case in every if is_suspicious(case.text)]
    assert len(suspected) >= 0.97 * len(every)
    texts = [case.text.encode() for case in suspected]
    assert list(_suspicious(pa.array(texts))) == list(range(len(texts)))
    argvs = [argv for case in suspected if (argv := case.argv()) and redact_argv(argv)[1]]
    assert list(_suspicious(pa.array(argvs))) == list(range(len(argvs)))

"""Secrets that are known by their own shape, wherever they stand.

Every quantifier is bounded or possessive, so that a stranger's text takes linear time.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

REDACTED = "<redacted>"


class Shape(NamedTuple):
    """`literals`, separated by |: without one of them the pattern is not tried. Group `keep`,
    where there is one, stays."""

    what: str
    literals: str
    pattern: str


_SHORTEST = 16  # of all shapes
_BEFORE = r"(?<![A-Za-z0-9])"

SHAPES: tuple[Shape, ...] = (
    Shape("private-key blocks", "PRIVATE KEY",
          r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY( BLOCK)?-----"
          r"(?:(?!-----).)*+(?:-----END [A-Z ]{0,40}PRIVATE KEY( BLOCK)?-----)?"),
    Shape("AWS key identifiers", "AKIA|ASIA|AIDA|AROA",
          _BEFORE + r"(?:AKIA|ASIA|AIDA|AROA)[0-9A-Z]{16}(?![A-Za-z0-9])"),
    Shape("GitHub", "ghp_|gho_|ghs_|ghu_|ghr_", _BEFORE + r"gh[opsur]_[A-Za-z0-9]{20,255}+"),
    Shape("GitHub", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}+"),
    Shape("GitLab", "glpat-|gldt-|glcbt-|glrt-|glptt-|glagent-|glsoat-|glft-",
          _BEFORE + r"gl(?:pat|dt|cbt|rt|ptt|agent|soat|ft)-[A-Za-z0-9_.-]{16,255}+"),
    Shape("Slack", "xox", _BEFORE + r"xox[abeoprs](?:\.xox[abp])?-[A-Za-z0-9-]{10,255}+"),
    Shape("Slack", "xapp-", _BEFORE + r"xapp-[A-Za-z0-9-]{10,255}+"),
    Shape("Slack and Discord web hooks", "hooks.slack.com|/webhooks/",
          r"(?P<keep>https://(?:hooks\.slack\.com/(?:services|workflows)"
          r"|discord(?:app)?\.com/api/webhooks)/)[A-Za-z0-9_/-]{8,255}+"),
    Shape("Telegram", "/bot", r"(?P<keep>/bot)[0-9]{5,20}:[A-Za-z0-9_-]{20,80}+"),
    Shape("Stripe", "k_live_|k_test_", _BEFORE + r"[srp]k_(?:live|test)_[A-Za-z0-9]{10,255}+"),
    Shape("Stripe", "whsec_", _BEFORE + r"whsec_[A-Za-z0-9+/=]{16,255}+"),
    Shape("npm", "npm_", _BEFORE + r"npm_[A-Za-z0-9]{30,60}+"),
    Shape("PyPI", "pypi-", _BEFORE + r"pypi-[A-Za-z0-9_-]{50,400}+"),
    Shape("Hugging Face", "hf_", _BEFORE + r"hf_[A-Za-z0-9]{25,60}+"),
    Shape("SendGrid", "SG.", _BEFORE + r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}+"),
    Shape("Docker", "dckr_", _BEFORE + r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,255}+"),
    Shape("Vault", "hvs.|hvb.|hvr.", _BEFORE + r"hv[sbr]\.[A-Za-z0-9_-]{20,400}+"),
    Shape("Google", "AIza", _BEFORE + r"AIza[0-9A-Za-z_-]{35}(?![A-Za-z0-9_-])"),
    Shape("Google", "ya29.", _BEFORE + r"ya29\.[0-9A-Za-z_-]{20,400}+"),
    Shape("Google", "GOCSPX-", _BEFORE + r"GOCSPX-[0-9A-Za-z_-]{20,64}+"),
    Shape("DigitalOcean", "dop_v1_|doo_v1_|dor_v1_", _BEFORE + r"do[opr]_v1_[a-f0-9]{64}"),
    Shape("Databricks", "dapi", _BEFORE + r"dapi[a-f0-9]{32}(?:-[0-9])?(?![A-Za-z0-9])"),
    Shape("OpenAI and Anthropic", "sk-",
          _BEFORE + r"sk-(?:[a-z]{2,12}[0-9]{0,2}-){0,2}(?=[A-Za-z0-9_-]{0,80}?[0-9])"
          r"(?=[A-Za-z0-9_-]{0,80}?[A-Z])[A-Za-z0-9_-]{20,255}+"),
    Shape("JWT", "eyJ",
          _BEFORE + r"eyJ[A-Za-z0-9_-]{8,16384}+\.eyJ[A-Za-z0-9_-]{8,16384}+"
          r"(?:\.[A-Za-z0-9_-]{0,16384}+)?"),
)  # fmt: skip  # a table


@cache
def _compiled() -> tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]:
    return tuple(
        (tuple(s.literals.split("|")), re.compile(s.pattern, re.DOTALL | re.ASCII)) for s in SHAPES
    )


def hide_shapes(text: str) -> str:
    """The text with every secret of a known shape replaced."""
    if len(text) < _SHORTEST:
        return text
    for literals, pattern in _compiled():
        if any(literal in text for literal in literals):
            text = pattern.sub(_kept, text)
    return text


def _kept(found: re.Match[str]) -> str:
    return (found.groupdict().get("keep") or "") + REDACTED

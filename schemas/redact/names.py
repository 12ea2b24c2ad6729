"""Whether the name of an option, a variable or a setting says that its value is a secret."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal


def word_set(text: str) -> frozenset[str]:
    """The words of the text."""
    return frozenset(text.split())


Kind = Literal["", "weak", "mild", "strong"]

# A name with one of these words is that of a secret, unless a word after it says otherwise.
STRONG = word_set(
    "password passwd passphrase passcode passwort pwd pw secret token jwt bearer psk otp "
    "apikey secretkey accesskey authkey authtoken privatekey credential credentials cred creds "
    "keypass storepass passkey cookie sessionid pass sas"
)
ENDINGS = ("password", "passwd", "passphrase", "secret", "token", "apikey", "pwd", "credentials")
PASS_ENDINGS = ("pass",)  # dbpass; not bypass, compass
NO_PASS = word_set("bypass compass highpass lowpass bandpass allpass twopass onepass")
# `key` alone says little: these words before it say that it is secret, those that it is none.
KEY_OF = word_set(
    "api access secret auth private account storage encryption encrypt signing sign master "
    "service license licence session subscription shared sas app client consumer deploy aes "
    "hmac crypt cipher vault webhook instrumentation wandb openai azure aws"
)
NO_KEY_OF = word_set(
    "sort group join primary foreign partition index hash map row column field public pub dict "
    "cache sample merge lookup range cell order by on ssh known host"
)
# After the word: what the value is of or about, not the secret itself.
ABOUT = word_set(
    "file files filename path dir directory folder length len count counts number num size limit "
    "name names url uri endpoint ttl expiry expires format policy column columns col cols field "
    "fields index idx pos position separator sep delimiter delim regex pattern env var variable "
    "prompt stdin fd cmd command program helper manager provider server host port version mode "
    "method check algorithm algo bits rounds strength age duration lifetime timeout interval "
    "retries required enabled disabled only ring map list set space type types model dim batch "
    "budget freq vocab class level min max rate threshold dropout used per lines words source "
    "authentication auth sum through ion word usage info status rule attempts agent"
)
ABOUT_KEY = frozenset({"id", "ids", "spec", "pair", "pairs", "value", "values", "space"})
_MILD = ("pass", "token")
# Flags: nothing follows that would be a value.
FLAGS = word_set(
    "no use ask with without show skip prompt has need needs is check print "
                  "generate gen save reset disable enable allow require max min num n"
)  # fmt: skip  # a table

_PARTS = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|[A-Z]|[0-9]+")
_LONGEST = 160


@lru_cache(maxsize=4096)
def kind_of_name(name: str) -> Kind:
    """What a name says of its value.

    strong: it is a secret. mild: unless it is a number (`--pass 2`). weak: where it also looks
    like one (KEY, AUTH). Empty: it is none.
    """
    if len(name) > _LONGEST:
        name = name[-_LONGEST:]
    parts = [p.lower() for p in _PARTS.findall(name) if not p.isdigit()]
    if parts and parts[-1] == "word" and parts[-2:-1] == ["pass"]:
        parts[-2:] = ["password"]
    for at in range(len(parts) - 1, -1, -1):
        kind = _kind_of_part(parts, at)
        if kind:
            after = parts[at + 1 :]
            about = ABOUT | ABOUT_KEY if parts[at] in ("key", "token", "pass") else ABOUT
            return "" if about.intersection(after) else kind
    return ""


def _kind_of_part(parts: list[str], at: int) -> Kind:
    part = parts[at]
    before = parts[:at]
    if part == "key":
        if before and before[-1] in NO_KEY_OF:
            return ""
        return "strong" if KEY_OF.intersection(before) else "weak"
    if part == "auth":
        return "weak"
    if part in STRONG:
        counted = before and before[-1] in ("max", "min", "num", "n")
        return "" if counted else ("mild" if part in _MILD else "strong")
    if part.endswith(ENDINGS):
        return "strong"
    if part.endswith(PASS_ENDINGS) and part not in NO_PASS:
        return "strong"
    return ""


def is_flag(name: str) -> bool:
    """Whether an option of this name takes no value (`--no-password`)."""
    return bool(FLAGS.intersection(p.lower() for p in _PARTS.findall(name)[:1]))

"""What Makeflow makes of a rule's command before a shell sees it (tried with makeflow 9.9)."""

from __future__ import annotations

_CONTROL = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def shell_text(command: str) -> str:
    """What Makeflow gives the shell for a rule's command: without its own backslashes.

    A backslash keeps the next character from Makeflow; in double quotes some stand for controls.
    """
    out: list[str] = []
    quote = ""
    chars = iter(command)
    for char in chars:
        if char == "\\":
            escaped = next(chars, "")
            out.append(_CONTROL.get(escaped, escaped) if quote == '"' else escaped)
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        out.append(char)
    return "".join(out)

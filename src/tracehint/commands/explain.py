"""`tracehint explain`: the documentation of a lint rule."""

from __future__ import annotations

import click

from tracehint.app.output import terminal_width, wants_color, write_result
from tracehint.errors import UsageError


def _codes(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """For the shell's completion."""
    from tracehint.hintgen.lint.registry import RULES

    return sorted(code for code in RULES if code.startswith(incomplete.upper()))


@click.command()
@click.argument("code", required=False, shell_complete=_codes)
@click.option("--all", "everything", is_flag=True, help="List all rules.")
@click.option("--format", "fmt", type=click.Choice(["text", "markdown"]), default="text")
def command(code: str | None, everything: bool, fmt: str) -> None:
    """Explain the lint rule CODE: what it finds, why it costs, what to do.

    Example: tracehint explain TP001
    """
    from tracehint.hintgen.compare.diff import CHANGES
    from tracehint.hintgen.lint.registry import REDIRECTS, RULES, load, rule_index, rule_page

    if everything or code is None:
        if fmt == "markdown":
            write_result(rule_index(), None)
            return
        lines = [f"{c}  {load(c).severity:8} {load(c).name}" for c in sorted(RULES)]
        write_result("\n".join(lines), None)
        return
    wanted = code.strip().upper()
    by_name = {load(c).name: c for c in RULES}
    wanted = by_name.get(code.strip().lower(), REDIRECTS.get(wanted, wanted))
    if wanted in CHANGES:
        name, severity = CHANGES[wanted]
        text = f"{wanted} {name} ({severity}): a difference between two runs (`diff`)."
        write_result(f"{text}\nSee docs/reference/diff.md.", None)
        return
    if wanted not in RULES:
        raise UsageError(f"no lint rule {code!r}", "List them: tracehint explain --all")
    page = rule_page(wanted)
    if fmt == "markdown":
        write_result(page, None)
        return
    write_result(_as_text(page), None)


def _as_text(page: str) -> str:
    import io

    from rich.console import Console
    from rich.markdown import Markdown

    out = io.StringIO()
    console = Console(
        file=out,
        width=min(100, max(40, terminal_width())),
        force_terminal=wants_color(),
        no_color=not wants_color(),
        highlight=False,
    )
    console.print(Markdown(page))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

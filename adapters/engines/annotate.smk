# Annotates a Snakemake workflow with what tracehint learned. This text is the same in every
# folder; names and values stand in hints.json beside it. A hint is advice: whatever does not fit
# this workflow or this Snakemake is left out with one line, and the workflow runs as its author
# wrote it.


def _tracehint_annotate():
    import json
    import shlex
    import sys
    from pathlib import Path

    left_out = {}

    def attempt(what, function, *arguments):
        """Whatever goes wrong in our part is no reason to stop a workflow."""
        try:
            return function(*arguments)
        except Exception as error:
            left_out.setdefault(what, f"{type(error).__name__}: {error}"[:200].replace("\n", " "))

    def folder():
        base = workflow.current_basedir
        try:
            return Path(base.get_path_or_uri(secret_free=True))
        except TypeError:  # before Snakemake 9
            return Path(base.get_path_or_uri())

    def rule_named(name):
        return next((r for r in workflow.rules if r.name == name), None)

    def matching(items, paths):
        for item in items:
            if callable(getattr(item, "match", None)) and any(item.match(p) for p in paths):
                yield item

    def set_flag(item, name, value):
        if name not in item.flags:  # what the author said stays
            item.set_flags({**item.flags, name: value})

    def access(entry):
        from snakemake.io.flags.access_patterns import STORE_KEY, AccessPattern

        job = rule_named(entry["rule"])
        for item in matching(job.input if job else (), entry["paths"]):
            set_flag(item, STORE_KEY, AccessPattern(entry["access"]))

    def temporary(entry):
        job = rule_named(entry["rule"])
        for item in matching(job.output if job else (), entry["paths"]):
            set_flag(item, "temp", True)

    def group(name, value):
        job = rule_named(name)
        if job is not None and job._group is None:
            job.group = value

    def tag_directories(where):
        # Snakemake's own default must be said again where the author set no prefix.
        before = shell._process_prefix
        before = "set -euo pipefail; " if before is None else before
        where = shlex.quote(str(where)).replace("{", "{{").replace("}", "}}")
        shell.prefix(
            before.replace("{", "{{").replace("}", "}}")
            + f"TRACEHINT_RULE=0 TRACEHINT_DIR={where}; "
            + f"[ -r {where}/tag ] && . {where}/tag; "
        )

    def everything():
        where = folder()
        data = json.loads((where / "hints.json").read_text(encoding="utf-8"))
        for entry in data["inputs"]:
            attempt("access patterns", access, entry)
        for entry in data["temporary"]:
            attempt("temp()", temporary, entry)
        for name, value in data["groups"].items():
            attempt("groups", group, name, value)
        if data["directories"]:
            attempt("tags of directories", tag_directories, where)

    attempt("all hints", everything)
    for what, why in left_out.items():
        print(f"tracehint: left out: {what} ({why})", file=sys.stderr)


_tracehint_annotate()

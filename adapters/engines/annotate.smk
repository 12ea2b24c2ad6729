# Annotates a Snakemake workflow with what tracehint learned. This text is the same in every
# folder; names and values stand in hints.json beside it. A hint is advice: whatever does not fit
# this workflow or this Snakemake is left out, and the workflow runs as its author wrote it.


def _tracehint_annotate(folder):
    import json
    import shlex
    import sys
    from pathlib import Path

    data = json.loads((Path(folder) / "hints.json").read_text(encoding="utf-8"))
    left_out = set()

    def rule_named(name):
        return next((r for r in workflow.rules if r.name == name), None)

    def matching(items, paths):
        for item in items:
            if callable(getattr(item, "match", None)) and any(item.match(p) for p in paths):
                yield item

    def set_flag(item, name, value):
        if name not in item.flags:  # what the author said stays
            item.set_flags({**item.flags, name: value})

    for entry in data["inputs"]:
        try:
            from snakemake.io.flags.access_patterns import STORE_KEY, AccessPattern

            job = rule_named(entry["rule"])
            for item in matching(job.input if job else (), entry["paths"]):
                set_flag(item, STORE_KEY, AccessPattern(entry["access"]))
        except (ImportError, AttributeError) as error:
            left_out.add(f"access patterns ({error})")
    for entry in data["temporary"]:
        job = rule_named(entry["rule"])
        for item in matching(job.output if job else (), entry["paths"]):
            try:
                set_flag(item, "temp", True)
            except AttributeError as error:
                left_out.add(f"temp ({error})")
    for name, group in data["groups"].items():
        job = rule_named(name)
        if job is not None and getattr(job, "_group", None) is None:
            job.group = group
    if data["directories"]:
        # Snakemake's own default must be said again where the author set no prefix.
        before = getattr(shell, "_process_prefix", None)
        before = "set -euo pipefail; " if before is None else before
        where = shlex.quote(str(folder)).replace("{", "{{").replace("}", "}}")
        shell.prefix(
            before.replace("{", "{{").replace("}", "}}")
            + f"TRACEHINT_RULE=0 TRACEHINT_DIR={where}; "
            + f"[ -r {where}/tag ] && . {where}/tag; "
        )
    for what in sorted(left_out):
        print(f"tracehint: left out: {what}", file=sys.stderr)


_tracehint_annotate(workflow.current_basedir.get_path_or_uri(secret_free=True))

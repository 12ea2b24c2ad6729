# Annotates a Snakemake workflow with tracehint's hints. This text is the same in every folder;
# names and values are in hints.json next to it. A hint is advice: anything incompatible with this
# workflow or this Snakemake is left out with one message, and the workflow runs as its author
# wrote it.


def _tracehint_annotate():
    import functools
    import json
    import re
    import shlex
    import sys
    from pathlib import Path

    left_out = {}
    # resources that Snakemake adds up in a group; all others must be equal in its jobs
    counted = ("_cores", "mem_mb", "disk_mb", "runtime")
    shells = (None, "sh", "bash", "dash", "ksh")  # None: /bin/sh
    numbers = {"_cores", "_nodes", "mem", "mem_mb", "mem_mib", "disk", "disk_mb", "disk_mib", "runtime"}

    def say(what, why):
        if what not in left_out:
            left_out[what] = why
            print(f"tracehint: left out: {what} ({why})", file=sys.stderr)

    def attempt(what, function, *arguments):
        """Call a function; errors in annotations must not stop the workflow."""
        try:
            return function(*arguments)
        except Exception as error:
            say(what, f"{type(error).__name__}: {error}"[:200].replace("\n", " "))

    def folder():
        base = workflow.current_basedir
        try:
            return Path(base.get_path_or_uri(secret_free=True))
        except TypeError:  # before Snakemake 9
            return Path(base.get_path_or_uri())

    def rule_named(name):
        return next((r for r in workflow.rules if r.name == name), None)

    def by_function(item):
        """Whether an input is a function of its job."""
        told = getattr(item, "is_callable", None)
        return told() if callable(told) else callable(item)

    def files_of(items):
        files = (item for item in items if not by_function(item))
        return [item for item in files if callable(getattr(item, "match", None))]

    def stored(item):
        """Return a file's name in the workflow, and the prefix of its local copy: with a storage
        plugin, the file's text is the path of the copy."""
        text, found = str(item), getattr(item, "flags", {}).get("storage_object")
        if found is None:
            return text, ""
        ours = getattr(workflow.storage_settings, "default_storage_prefix", None) or ""
        name = str(found.query).removeprefix(ours).lstrip("/")
        return (name, text[: -len(name)]) if text.endswith(name) else (text, "")

    def name_of(item):
        return stored(item)[0]

    def fits(item, entry):
        """Whether a file matches by its producer, its name, or recorded names."""
        name, before = stored(item)
        if any(item.match(before + path) for path in entry["paths"]):
            return True
        if entry.get("regex") and re.fullmatch(entry["regex"], name):
            return True
        makers = filter(None, map(rule_named, entry.get("producers", ())))
        made = [out for maker in makers for out in files_of(maker.output)]
        return any(str(out) == str(item) or out.match(str(item)) for out in made)

    def set_flag(item, name, value):
        if name not in item.flags:  # the author's flags stay
            item.set_flags({**item.flags, name: value})

    def access(entry):
        job = rule_named(entry["rule"])
        if job:
            set_access(entry, files_of(job.input))
            if any(map(by_function, job.input)):
                late.setdefault(job.name, []).append(entry)

    def set_access(entry, items):
        from snakemake.io.flags.access_patterns import STORE_KEY, AccessPattern

        for item in items:
            if fits(item, entry):
                set_flag(item, STORE_KEY, AccessPattern(entry["access"]))

    def access_of_jobs(dag):
        """Set the access of inputs that the author's functions return."""
        for job in dag.needrun_jobs() if late else ():
            for entry in late.get(job.rule.name, ()):
                set_access(entry, files_of(job.input))

    def temporary(entry):
        job = rule_named(entry["rule"])
        for item in files_of(job.output if job else ()):
            if fits(item, entry) and "protected" not in item.flags:
                set_flag(item, "temp", True)

    def part_of(outputs):
        return next((parts[n] for n in map(name_of, outputs) if n in parts), None)

    @functools.lru_cache(maxsize=None)
    def wishes(rule):
        """Return a rule's requested resources: numbers and texts, or objects with a value."""
        return {n: getattr(r, "_value", r) for n, r in rule.resources.items()}

    def alike(first, second):
        """Whether Snakemake can add up the resources of two rules."""
        first, second = wishes(first), wishes(second)
        return all(first.get(n) == second.get(n) for n in {*first, *second} - numbers)

    def joinable(job):
        return not (job.is_local or job.is_checkpoint or job.is_norun or job.pipe_group) and (
            job.group is None
        )

    def belong(job, child):
        first, second = part_of(job.output), part_of(child.output)
        if first is not None or second is not None:
            return first == second
        return [job.rule.name, child.rule.name] in data["pairs"]

    def asked(job, name):
        """Return a number requested by the job's rule, 0 without; None: unknown until it starts."""
        value = wishes(getattr(job, "rule", job)).get(name, 0)
        if value is None or name in shared:  # not requested, or Snakemake's default
            return 0
        return value if isinstance(value, int) else None

    @functools.lru_cache(maxsize=None)
    def most(name):
        """Return the largest number that any rule requests, which must be available."""
        return max((asked(rule, name) or 0 for rule in workflow.rules), default=0)

    def at_once(job, inside, name):
        """Return the peak use of a job and its predecessors in the group."""
        return max(asked(job, name), sum(at_once(o, inside, name) for o in inside.get(job, ())))

    def in_turn(job, inside, name):
        """Return the use of a job and its predecessors one after the other."""
        before = (in_turn(o, inside, name) for o in inside.get(job, ()))
        return asked(job, name) + max(before, default=0)

    def affordable(head, inside):
        """Whether the group requests no more than a single job does, or a node has."""
        return (
            at_once(head, inside, "_cores") <= max(data["cores"], most("_cores"))
            and all(at_once(head, inside, name) <= most(name) for name in ("mem_mb", "disk_mb"))
            and in_turn(head, inside, "runtime") <= max(data["minutes"], most("runtime"))
        )

    def defaults():
        """Yield sizes that all rules compute alike from inputs: Snakemake's own default."""
        for name in ("mem_mb", "disk_mb"):
            values = [wishes(rule).get(name) for rule in workflow.rules]
            if not isinstance(values[0], int) and all(value == values[0] for value in values):
                yield name

    def trees(dag):
        """Return the group of each job: a job joins the group of its children if they share one, so
        only the last job of a group has dependents outside, and no group waits for itself."""
        group, inside, sizes, order = {}, {}, {}, list(dag.toposorted())
        shared.update(defaults())
        for job in (job for level in reversed(order) for job in level):
            known = all(asked(job, name) is not None for name in counted)
            if not dag.needrun(job) or not joinable(job) or not known:
                continue
            children = list(dag.depending.get(job, ()))
            heads = {group.get(child) for child in children}
            head = heads.pop() if len(heads) == 1 else None
            fit = head is not None and sizes[head] < 64 and all(belong(job, c) for c in children)
            if fit and all(alike(job.rule, c.rule) for c in children):
                before = inside.setdefault(children[0], [])
                before.append(job)
                if affordable(head, inside):
                    group[job] = head
                    sizes[head] += 1
                    continue
                before.remove(job)
            group[job], sizes[job] = job, 1
        return {job: head for job, head in group.items() if sizes[head] > 1}

    def on_nodes(dag, given):
        """Pass the node of a job's part to sbatch (executor plugin slurm). Jobs in the author's
        groups, where parts may differ, run anywhere."""
        for job in dag.needrun_jobs():
            words = data["nodes"].get(str(part_of(job.output)), "")
            apart = job in given or joinable(job)
            if words and apart and job not in told and "slurm_extra" not in job.rule.resources:
                told.add(job)
                job.add_aux_resource("slurm_extra", words)

    def assign(dag, given):
        """Name the groups, once for each job: running jobs keep theirs.

        Only if this Snakemake sends jobs to an executor: otherwise groups have no effect.
        """
        if dag.workflow.local_exec or not dag.workflow.is_main_process:
            return
        names = {}
        for job, head in trees(dag).items():
            if job in given:
                continue
            name = names.setdefault(head, f"tracehint{len(given)}")
            given[job] = job.group = name
        attempt("nodes", on_nodes, dag, given)
        for job, name in given.items():
            children = dag.depending.get(job)
            if children and all(given.get(child) == name for child in children):
                for item in job.output:  # as temp(..., group_jobs=True)
                    if "temp" in item.flags and item not in dag.targetfiles:
                        set_flag(item, "nodelocal", True)

    def group_jobs():
        from snakemake.dag import DAG

        plain, given = DAG.update_groups, {}

        def update_groups(dag, *arguments, **options):
            attempt("groups", assign, dag, given)
            attempt("access patterns", access_of_jobs, dag)
            try:
                return plain(dag, *arguments, **options)
            except Exception as error:
                if not given:
                    raise
                say("groups", str(error)[:200].replace("\n", " "))
                for job in given:
                    job.group = None
                    for item in job.output:
                        item.set_flags({k: v for k, v in item.flags.items() if k != "nodelocal"})
                given.clear()
                return plain(dag, *arguments, **options)

        DAG.update_groups = update_groups

    def warn_of_copies():
        if getattr(workflow.storage_settings, "keep_storage_local", False):
            print(
                "tracehint: --keep-storage-local-copies keeps a copy of every input on disk, "
                "also of those that access.sequential would read without a copy",
                file=sys.stderr,
            )

    def tag_directories(where):
        """Tag before each shell command, with any shell or prefix of its author."""
        plain, where = shell._get_process_prefix, shlex.quote(str(where))
        ours = (
            f"TRACEHINT_RULE=0 TRACEHINT_DIR={where}; [ -r {where}/tag ] && . {where}/tag; "
        )

        def prefix(cls, shell_exec=None):
            before = plain(shell_exec)
            usual = cls._get_executable_name(shell_exec) in shells
            return ours + before if usual else before  # the author's may be `nice -n 5`

        shell._get_process_prefix = classmethod(prefix)

    def everything():
        where = folder()
        data.update(json.loads((where / "hints.json").read_text(encoding="utf-8")))
        parts.update(data["parts"])
        for entry in data["inputs"]:
            attempt("access patterns", access, entry)
        for entry in data["temporary"]:
            attempt("temp()", temporary, entry)
        if data["pairs"] or parts or late:
            attempt("groups", group_jobs)
        attempt("warnings", warn_of_copies)
        if data["directories"]:
            attempt("tags of directories", tag_directories, where)

    data, parts, late, shared, told = {}, {}, {}, set(), set()
    attempt("all hints", everything)


_tracehint_annotate()

"""Recordings of a run's batch jobs: made on the jobs' nodes, joined when the run ends."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.collectors.preload.jobs import SUBMIT
from tracehint.errors import BundleError, TracehintError
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa


_QSUB = "; qsub passes the environment on with -V (or #PBS -V in the script)"
_INTERPRETERS = "sh|bash|perl|python"
WAIT_S = 30.0  # for unfinished recordings of jobs
_SILENT = (
    "started no recorder (its first program is static or setuid, or the node cannot access this "
    "directory or tracehint)"
)
_LATE = "the job is running, and the next `tracehint run` here joins it; or it was killed"
_BUNDLE_NAME_FILE = "run"  # file in the folder, written when the run ends: its bundle's name
_SHARED_VARS = ("TRACEHINT_SHARED",)  # variables that the run's own recorder needs too


@dataclass(frozen=True)
class Jobs:
    """Folder of the jobs' recordings, and variables that make jobs record; None: they do not."""

    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def join(self, bundle: Path, *, quiet: bool) -> None:
        """Join the jobs' recordings to the run's bundle, and report missing ones."""
        from tracehint.collectors.preload.jobs import find_unfinished, recordings_in, wait_for_jobs

        if self.folder is None:
            return
        late = find_unfinished(recordings_in(self.folder))
        if late and not quiet:
            _say(f"waiting for {plural(len(late), 'recording')} of jobs, at most {WAIT_S:.0f} s")
        late = wait_for_jobs(self.folder, WAIT_S)
        whole = [part for part in recordings_in(self.folder) if part not in late]
        lines = _report_missing(bundle, whole, late)
        joined = _join_jobs(bundle, whole) if whole else []
        (self.folder / _BUNDLE_NAME_FILE).write_text(bundle.name)
        for line in [*joined, *lines]:
            if not quiet or late:
                _say(line)


def join_late(directory: Path, *, quiet: bool) -> None:
    """Join recordings of jobs that outlasted their run to the bundles of these runs, all
    recordings of a run in one merge."""
    from tracehint.adapters.project.state import jobs_folders
    from tracehint.collectors.preload.jobs import find_unfinished, recordings_in

    for folder in jobs_folders(directory):
        if not (folder / _BUNDLE_NAME_FILE).is_file():
            continue  # the run has not ended
        bundle = folder.parent / Path((folder / _BUNDLE_NAME_FILE).read_text()).name
        late = find_unfinished(recordings_in(folder))
        whole = [part for part in recordings_in(folder) if part not in late]
        if not bundle.is_dir():  # deleted: older than the runs that are kept
            shutil.rmtree(folder, ignore_errors=True)
            continue
        for line in _join_jobs(bundle, whole) if whole else []:
            if not quiet:
                _say(f"{bundle.name}: {line}")
        _remove_empty(folder)


def _remove_empty(folder: Path) -> None:
    """Remove the folder of jobs' recordings if it contains none."""
    from tracehint.collectors.preload.jobs import recordings_in

    if not recordings_in(folder):
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def jobs_recorded(directory: Path) -> Iterator[Jobs]:
    """Yield what makes a command's jobs record during the block, if there is a batch system.

    The folder is kept while it contains recordings.
    """
    from tracehint.adapters.project.state import jobs_folder
    from tracehint.collectors.begin import recorded_already
    from tracehint.collectors.preload.jobs import has_batch_system, jobs_environment

    if not has_batch_system() or recorded_already():
        yield Jobs()
        return
    folder = None
    try:
        folder = jobs_folder(directory)
        environment = jobs_environment(folder)
    except (OSError, TracehintError) as error:
        _say(f"jobs of a batch system are not recorded: {str(error).splitlines()[0]}")
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        yield Jobs()
        return
    try:
        with _set_env({name: environment[name] for name in _SHARED_VARS if name in environment}):
            yield Jobs(folder, environment)
    finally:
        _remove_empty(folder)


@contextmanager
def _set_env(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _join_jobs(bundle: Path, recordings: list[Path]) -> list[str]:
    """Join the recordings with the bundle, remove those that were read without a problem, and
    return lines on the result."""
    try:
        read, problems = _merge_bundle(bundle, recordings)
    except TracehintError as error:
        kept = recordings[0].parent
        return [f"recordings of jobs were not joined: {error}\n  They are kept in {kept}"]
    for part in read:
        part.unlink(missing_ok=True)
    lines = [f"left out: {text}" for text in problems]
    if left := len(recordings) - len(read):
        kept = recordings[0].parent
        lines.append(f"{plural(left, 'recording')} with problems: kept in {kept}")
    hosts = plural(len({part.name.split(".", 1)[1].rsplit(".", 2)[0] for part in read}), "host")
    return [f"{plural(len(read), 'recording')} of jobs on {hosts} joined", *lines]


def _merge_bundle(bundle: Path, recordings: list[Path]) -> tuple[list[Path], list[str]]:
    """Merge the jobs into the bundle; its start, end and exit status stay those of the command.
    Returns the recordings that were read without a problem, and the problems of the others.
    Raises TracehintError."""
    from tracehint.app.merging import MergeRequest, join_bundles, parts_of
    from tracehint.collectors.join import refuse_twice
    from tracehint.schemas.arrow import skip_pandas
    from tracehint.schemas.manifest import read_manifest
    from tracehint.schemas.writer import whole_bundle

    skip_pandas()
    own = read_manifest(bundle)
    bundles = (bundle, *recordings)
    with parts_of(bundles) as (read, problems):
        refuse_twice(read)
        if read[0].path != bundle or read[0].problems:
            why = "; ".join([*problems, *read[0].problems])
            raise BundleError(f"{bundle}: incomplete: {why}", "Join them with `tracehint merge`.")
        asked = MergeRequest(tuple(map(str, bundles)), bundle, True, False, None, True)
        whole, _ = join_bundles(read, problems, asked)
        manifest = whole.manifest
        manifest.command, manifest.cwd, manifest.started_ns = own.command, own.cwd, own.started_ns
        manifest.ended_ns, manifest.exit_status = own.ended_ns, own.exit_status
        with whole_bundle(bundle, force=True) as made:
            whole.write(whole.writer(made))
    damaged = [f"{part.path.name}: {text}" for part in read for text in part.problems]
    return [part.path for part in read[1:] if not part.problems], [*problems, *damaged]


def _report_missing(bundle: Path, whole: list[Path], late: list[Path]) -> list[str]:
    """Return a line on the jobs without a recording, and the reasons; empty without such jobs."""
    from tracehint.collectors.preload.jobs import jobs_of
    from tracehint.schemas.store import read_bundle
    from tracehint.schemas.tables import TABLES

    processes = read_bundle(bundle, without=TABLES.keys() - {"processes"}).tables["processes"]
    arrived, began = jobs_of(whole), jobs_of(late)
    known = len(arrived | began)
    most = max(known, submissions(processes))
    silent = most - known
    qsub = _QSUB if submissions(processes, ("qsub",)) else ""
    why = [f"{plural(silent, 'job')} {_SILENT}{qsub}"] if silent else []
    if late:
        cut = f"{plural(len(late), 'recording')} unfinished after {WAIT_S:.0f} s"
        why.append(f"{cut} ({_LATE}): {late[0].parent}")
    missing = silent + len(began - arrived)
    if not why:
        return []
    return [f"{missing} of {plural(most, 'job')} left no recording: {'; '.join(why)}"]


def submissions(processes: pa.Table, programs: tuple[str, ...] = SUBMIT) -> int:
    """Count successful submit commands of the run, including those that are scripts."""
    import pyarrow.compute as pc

    ended = processes.filter(pc.equal(processes.column("exit_code"), 0))
    words = pc.list_slice(ended.column("argv"), 0, 3, return_fixed_size_list=True)
    first, *rest = (pc.list_element(words, place) for place in range(3))
    names = "|".join(programs)
    found = pc.match_substring_regex(first, rf"^(.*/)?({names})$")
    script = pc.match_substring_regex(first, rf"^(.*/)?({_INTERPRETERS})[0-9.]*$")
    for word in rest:
        named = pc.match_substring_regex(word, rf"^.*/({names})$")
        found = pc.or_(found, pc.and_(script, pc.fill_null(named, fill_value=False)))
    return pc.sum(found).as_py() or 0


def _say(line: str) -> None:
    click.echo(f"tracehint: {line}", err=True)

"""Jobs that a batch system starts for a run: recorded on their nodes, joined when the run ends."""

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
from tracehint.errors import TracehintError
from tracehint.hintgen.text.units import plural

if TYPE_CHECKING:
    import pyarrow as pa

_QSUB = "; qsub hands the environment on with -V (or #PBS -V in the script)"
_INTERPRETERS = "sh|bash|perl|python"
WAIT_S = 30.0  # for recordings of jobs that began and have not ended
_SILENT = (
    "began no recorder (its first program is static or setuid, or the node does not see this "
    "directory and tracehint)"
)
_MARKS = ("TRACEHINT_SHARED",)  # of the environment that the run's own recorder needs as well


@dataclass(frozen=True)
class Jobs:
    """Where jobs record to, and what makes them; without a folder they do not."""

    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def join(self, bundle: Path, *, quiet: bool) -> None:
        """The jobs' recordings into that of the run; what did not arrive is told."""
        from tracehint.collectors.preload.jobs import bundles_in, unfinished, wait_for_jobs

        if self.folder is None:
            return
        late = unfinished(bundles_in(self.folder))
        if late and not quiet:
            _say(f"waiting for {plural(len(late), 'recording')} of jobs, at most {WAIT_S:.0f} s")
        late = wait_for_jobs(self.folder, WAIT_S)
        whole = [part for part in bundles_in(self.folder) if part not in late]
        lines = _told(bundle, whole, late)
        if whole:
            try:
                lines = [*_merged(bundle, whole), *lines]
            except TracehintError as error:
                _say(f"recordings of jobs were not joined: {error}\n  They are in {self.folder}.")
                return
        for part in whole:
            shutil.rmtree(part, ignore_errors=True)
        if not quiet or late:
            for line in lines:
                _say(line)


@contextmanager
def jobs_recorded(directory: Path) -> Iterator[Jobs]:
    """What jobs of a command need that runs meanwhile, where there is a batch system.

    The folder stays where a recording in it has not ended.
    """
    from tracehint.adapters.project.state import jobs_folder
    from tracehint.collectors.preload.jobs import bundles_in, has_batch_system, jobs_environment
    from tracehint.collectors.session import recorded_already

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
        with _set({name: environment[name] for name in _MARKS if name in environment}):
            yield Jobs(folder, environment)
    finally:
        if not bundles_in(folder):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
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


def _merged(bundle: Path, parts: list[Path]) -> list[str]:
    """The bundle with its jobs; its end and exit status stay those of the command."""
    from tracehint.collectors.identity import refuse_twice
    from tracehint.commands.merge import MergeRequest, joined, parts_of
    from tracehint.schemas.arrow import skip_pandas
    from tracehint.schemas.manifest import read_manifest
    from tracehint.schemas.writer import BundleWriter, whole_bundle

    skip_pandas()
    own = read_manifest(bundle)
    bundles = (bundle, *parts)
    with parts_of(bundles) as (read, problems):
        refuse_twice(read)
        asked = MergeRequest(tuple(map(str, bundles)), bundle, True, False, None, True)
        whole, _ = joined(read, problems, asked)
        manifest = whole.manifest
        manifest.command, manifest.cwd, manifest.started_ns = own.command, own.cwd, own.started_ns
        manifest.ended_ns, manifest.exit_status = own.ended_ns, own.exit_status
        with whole_bundle(bundle, force=True) as made:
            whole.write(BundleWriter(made, keep_args=manifest.kept_args))
    hosts = plural(len({host.name for part in read[1:] for host in part.manifest.hosts}), "host")
    said = f"{plural(len(read) - 1, 'recording')} of jobs on {hosts} joined"
    return [said, *(f"left out: {text}" for text in problems)]


def _told(bundle: Path, whole: list[Path], late: list[Path]) -> list[str]:
    """Jobs without a recording, and why."""
    from tracehint.collectors.preload.jobs import jobs_of
    from tracehint.schemas.store import read_bundle

    processes = read_bundle(bundle, without=("extents", "metadata_ops")).tables["processes"]
    arrived, began = jobs_of(whole), jobs_of(late)
    known = len(arrived | began)
    most = max(known, submissions(processes))
    silent = most - known
    qsub = _QSUB if submissions(processes, ("qsub",)) else ""
    why = [f"{plural(silent, 'job')} {_SILENT}{qsub}"] if silent else []
    if late:
        cut = f"{plural(len(late), 'recording')} had no end after {WAIT_S:.0f} s"
        why.append(f"{cut} (the job runs, or was killed): {late[0].parent}")
    missing = silent + len(began - arrived)
    if not why:
        return []
    return [f"{missing} of {plural(most, 'job')} left no recording: {'; '.join(why)}"]


def submissions(processes: pa.Table, programs: tuple[str, ...] = SUBMIT) -> int:
    """Commands of the run that submitted a job and ended well; some sites' are scripts."""
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

"""Recording with the site's own Darshan runtime: preloaded, one log per process, then imported."""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from tracehint.collectors.base import Availability, RecordRequest, RecordResult
from tracehint.collectors.begin import begin, child_environment, new_manifest
from tracehint.collectors.run import report_failures, run_child, runnable
from tracehint.errors import CollectorError
from tracehint.schemas.losses import losses_of
from tracehint.schemas.recovery import RAW_DIR
from tracehint.schemas.writer import write_bundle

REMEDY = (
    "Load the site's module (module load darshan-runtime), or build Darshan's runtime with "
    "./configure --without-mpi and set DARSHAN_LIB=/path/to/libdarshan.so"
)
# higher than Darshan's defaults: 1,024 files and 4 MiB of segments are too few for a task
CONFIG = """\
MAX_RECORDS 100000 POSIX,STDIO,DXT_POSIX
MODMEM 256
NAMEMEM 64
"""


def find_library() -> Path | None:
    """Return the site's libdarshan: DARSHAN_LIB, then darshan-config, then the loader's path."""
    given = os.environ.get("DARSHAN_LIB")
    if given:
        return Path(given) if Path(given).is_file() else None
    config = shutil.which("darshan-config")
    if config:
        flags = subprocess.run(
            [config, "--dyn-ld-flags"], capture_output=True, text=True, timeout=10, check=False
        ).stdout
        folders = [Path(w.removeprefix("-L")) for w in flags.split() if w.startswith("-L")]
        for folder in folders:
            if (folder / "libdarshan.so").is_file():
                return folder / "libdarshan.so"
    found = ctypes.util.find_library("darshan")
    return Path(found) if found else None


class DarshanCollector:
    """Runs the command under libdarshan in non-MPI mode with DXT."""

    name = "darshan"

    def check(self) -> Availability:
        """Return whether libdarshan and the package that reads its logs are installed."""
        from tracehint.collectors.darshan.assembly import BLIND_TO

        cost = "1.3 to 1.7 us per call with DXT, 1.2 to 1.7 ms per process (published figures)"
        library = find_library()
        if library is None:
            return Availability(False, "no libdarshan.so found", REMEDY, BLIND_TO, cost)
        if importlib.util.find_spec("darshan") is None:
            what = "the package `darshan`, which reads the logs, is not installed"
            remedy = "Install it: pip install 'tracehint[darshan]'"
            return Availability(False, what, remedy, BLIND_TO, cost)
        return Availability(True, f"uses {library}", "", BLIND_TO, cost)

    def record(self, request: RecordRequest) -> RecordResult:
        """Run the command and import its logs. If that fails, the logs stay in the bundle."""
        from tracehint.collectors.darshan.importer import gather

        library = find_library()
        if library is None:
            raise CollectorError("no libdarshan.so found", REMEDY)
        command = runnable(request.command)
        manifest = new_manifest(request, "darshan")
        writer, logs = begin(request, manifest, RAW_DIR)
        named = request.output / RAW_DIR  # by name: also valid without our /proc entry
        ended = run_child(command, _environment(request, library, logs, named))
        losses: dict[str, int] = {}
        with report_failures(f"Darshan's logs are kept in {named}."):
            tables, facts = gather([logs])
            manifest.started_ns, manifest.ended_ns = facts.started_ns, facts.ended_ns
            manifest.blind_to, manifest.notes = facts.blind_to, facts.notes
            manifest.exit_status, manifest.complete = ended.status, True
            write_bundle(writer, tables, manifest)
            losses = losses_of(tables["losses"])
            shutil.rmtree(logs)
        return RecordResult(ended.status, ended.signal, losses, writer.path)


def _environment(request: RecordRequest, library: Path, logs: Path, named: Path) -> dict[str, str]:
    """Write Darshan's configuration; return the command's environment with Darshan enabled."""
    (logs / "darshan.conf").write_text(CONFIG, encoding="ascii")
    environment = child_environment(request)
    before = environment.get("LD_PRELOAD", "")
    return environment | {
        "DARSHAN_ENABLE_NONMPI": "1",
        "DXT_ENABLE_IO_TRACE": "1",
        "DARSHAN_LOG_DIR_PATH": str(named),
        "DARSHAN_LOGPATH": str(named),
        "DARSHAN_CONFIG_PATH": str(named / "darshan.conf"),
        "LD_PRELOAD": f"{library}:{before}" if before else str(library),
    }

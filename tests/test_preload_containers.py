"""The preload collector and programs with another root directory, with and without the library
there; and programs with another C library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.needs import needs_preload
from tracehint.schemas.store import Bundle, read_bundle

pytestmark = [pytest.mark.slow, needs_preload()]

# Visible in a container: this machine's programs, the work directory as /data, nothing else.
INSIDE = (
    "--ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/bin /bin "
    "--proc /proc --dev /dev --bind . /data --chdir /data"
)
BOUND = '--bind "$TRACEHINT_RECORD" "$TRACEHINT_RECORD" --ro-bind "$LD_PRELOAD" "$LD_PRELOAD"'


def recorded(folder: Path, script: str, *options: str) -> tuple[Bundle, str]:
    """Record the shell script; return the recording and its output on standard error."""
    done = tracehint(
        "record", "--quiet", "--collector", "preload", *options, "-o", "../run.trace", "--",
        "sh", "-c", script, cwd=folder,
    )  # fmt: skip  # a table
    assert done.returncode == 0, done.stderr
    return read_bundle(folder.parent / "run.trace"), done.stderr


def losses(bundle: Bundle) -> list[tuple[str, int, str]]:
    """Return kind, count and detail of each loss."""
    return [(r["kind"], r["count"], r["detail"]) for r in bundle.tables["losses"].to_pylist()]


def read_bytes(bundle: Bundle, inode: int) -> int:
    """Return the bytes read from a file, under any name."""
    files = {f["file"] for f in bundle.tables["files"].to_pylist() if f["ino"] == inode}
    return sum(r["read_bytes"] for r in bundle.tables["opens"].to_pylist() if r["file"] in files)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A directory with an input of 5,000 bytes."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "in").write_bytes(bytes(5000))
    return folder


def need_bwrap() -> None:
    """Skip the test if bubblewrap is missing or not allowed."""
    words = ["bwrap", "--ro-bind", "/", "/", "true"]
    if not shutil.which("bwrap") or subprocess.run(words, check=False).returncode:
        pytest.skip("bubblewrap is missing or not allowed")


def need_namespaces() -> None:
    """Skip the test if users may not create namespaces."""
    words = ["unshare", "-r", "--mount", "true"]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("name spaces of users are not allowed")


def test_a_container_without_the_library_is_named_and_undisturbed(work: Path) -> None:
    need_bwrap()
    bundle, said = recorded(work, f"bwrap {INSIDE} sh -c 'cat in > out; ls nothing || true'")
    assert "ld.so" not in said
    assert (work / "out").stat().st_size == 5000
    assert losses(bundle) == [("unentered_programs", 1, "without the library there")]
    assert "static_binaries" in bundle.manifest.blind_to


def test_a_container_with_the_library_bound_is_recorded(work: Path) -> None:
    need_bwrap()
    bundle, said = recorded(work, f"bwrap {INSIDE} {BOUND} sh -c 'cat in > out'")
    assert "ld.so" not in said
    assert losses(bundle) == []
    assert read_bytes(bundle, (work / "in").stat().st_ino) == 5000


def test_another_root_directory(work: Path) -> None:
    """`unshare` and `chroot`, as in an unprivileged build of a root file system."""
    root = work.parent / "root"
    need_namespaces()
    script = (
        f"mkdir -p {root}/usr {root}/data && mount --bind /usr {root}/usr && mount --bind . "
        f"{root}/data && ln -sfn usr/lib {root}/lib && ln -sfn usr/lib64 {root}/lib64 && "
        f"chroot {root} /usr/bin/cat /data/in > out"
    )
    bundle, said = recorded(work, f"unshare -r --mount sh -c '{script}'")
    assert "ld.so" not in said
    assert (work / "out").stat().st_size == 5000
    assert ("unentered_programs", 1, "without the library there") in losses(bundle)


BIND = (  # from docs/collectors/preload.md, with the name of the root directory
    'mkdir -p "$R$TRACEHINT_RECORD" "$R${LD_PRELOAD%/*}" && touch "$R$LD_PRELOAD" && '
    'mount --bind "$TRACEHINT_RECORD" "$R$TRACEHINT_RECORD" && '
    'mount --bind "$LD_PRELOAD" "$R$LD_PRELOAD"'
)


def test_another_root_directory_with_the_library_bound(work: Path) -> None:
    """With the page's command, programs there are recorded; their outside names remain unknown."""
    root = work.parent / "root"
    (work / "enter.sh").write_text(
        f"set -e; R={root}; mkdir -p $R/usr $R/data; mount --bind /usr $R/usr\n"
        "mount --bind . $R/data; ln -sfn usr/lib $R/lib; ln -sfn usr/lib64 $R/lib64\n"
        f"{BIND}\nchroot $R /usr/bin/cp /data/in /data/out\n"
    )
    need_namespaces()
    assert BIND in (Path(__file__).parents[1] / "docs/collectors/preload.md").read_text()
    bundle, said = recorded(work, "unshare -r --mount sh enter.sh")
    assert (work / "out").stat().st_size == 5000, said
    rows = bundle.tables["opens"].to_pylist()
    assert [r["write_bytes"] for r in rows if r["path"].endswith(b"/data/out")] == [5000], said
    own = [count for kind, count, _ in losses(bundle) if kind == "container_names"]
    assert own == [1]
    assert {kind for kind, _, _ in losses(bundle)} <= {"container_names", "unentered_programs"}


# Runs in containers that call the directory BOX: it makes `out` from `mid`.
INNER = "cat BOX/mid > BOX/made && mv BOX/made BOX/out && rm BOX/mid"
FORMS = {
    "a second name": f"bwrap --dev-bind / / --bind . BOX sh -c '{INNER}'",
    "relative names": "bwrap --dev-bind / / --bind . BOX --chdir BOX sh -c "
    "'cat ../box/mid > ./made; mv made out; rm mid'",
    "the root": f"bwrap --bind . / {INSIDE} {BOUND} sh -c '{INNER}'".replace(
        " --bind . /data --chdir /data", ""
    ).replace("BOX", ""),
    "one in another": "bwrap --dev-bind / / --bind . BOX "
    f"bwrap --dev-bind / / --bind BOX /mnt sh -c '{INNER.replace('BOX', '/mnt')}'",
    "mounted by a child": "unshare -r --mount sh -c 'mount --bind . BOX; exec 3> BOX/made; "
    "cat BOX/mid >&3; mv BOX/made BOX/out; rm BOX/mid'",
    "its own path": f"bwrap --dev-bind / / --bind $PWD $PWD sh -c '{INNER.replace('BOX/', '')}'",
}


@pytest.mark.parametrize("form", FORMS)
def test_names_inside_a_container_become_those_outside(work: Path, form: str) -> None:
    need_bwrap()
    need_namespaces()
    box = work.parent / "box"
    box.mkdir()
    script = FORMS[form].replace("BOX", str(box))
    bundle, said = recorded(work, f"cat in > mid; {script}; cat out > final")
    assert (work / "final").stat().st_size == 5000, said
    assert {kind for kind, _, _ in losses(bundle)} <= {"unentered_programs"}  # mount
    of_data = (b"in", b"mid", b"made", b"out", b"final")
    seen = {r["path"] for r in bundle.tables["opens"].to_pylist()}
    for row in bundle.tables["names"].to_pylist():
        seen |= {row["path"], row["new_path"] or b""}
    seen = {path for path in seen if path.rpartition(b"/")[2] in of_data}
    assert seen == {os.fsencode(work / os.fsdecode(name)) for name in of_data}


MUSL = """
#include <stdio.h>
int main(void)
{
	FILE *in = fopen("in", "r"), *out = fopen("out", "w");
	int c;
	while ((c = getc(in)) != EOF)
		putc(c, out);
	return fclose(out) || fclose(in);
}
"""


def test_a_program_of_another_c_library_runs_and_is_named(work: Path) -> None:
    if not shutil.which("musl-gcc"):
        pytest.skip("musl-gcc is not installed")
    source = work / "musl.c"
    source.write_text(MUSL)
    subprocess.run(["musl-gcc", source, "-o", work / "musl"], check=True)
    bundle, said = recorded(work, "./musl; cat out > copy")
    assert not said.strip()
    assert losses(bundle) == [("unentered_programs", 1, "another C library")]
    assert (work / "copy").stat().st_size == 5000
    assert read_bytes(bundle, (work / "out").stat().st_ino) == 5000  # later readers are recorded


def test_a_command_of_another_c_library_is_not_begun(work: Path) -> None:
    if not shutil.which("musl-gcc"):
        pytest.skip("musl-gcc is not installed")
    (work / "musl.c").write_text(MUSL)
    subprocess.run(["musl-gcc", work / "musl.c", "-o", work / "musl"], check=True)
    done = tracehint("record", "--collector", "preload", "--", work / "musl", cwd=work)
    assert done.returncode == 125
    assert "another C library" in done.stderr


def test_process_numbers_of_concurrent_namespaces_are_not_mixed(work: Path) -> None:
    """Three concurrent namespaces, each of which assigns the same process numbers."""
    words = ["unshare", "-r", "-p", "-f", "--mount", "--mount-proc", "true"]
    if not shutil.which("unshare") or subprocess.run(words, check=False).returncode:
        pytest.skip("PID namespaces are not allowed")
    inner = "head -c {}000 in > a{}; sh -c 'head -c {}00 a{} > b{}; cat b{} > c{}'".replace(
        "{}", "X"
    )
    words[-1] = f'sh -c "{inner}"'
    recorded(work, f"printf '%s\\n' 1 2 3 4 | xargs -P 3 -I X {' '.join(words)}")
    done = tracehint("analyze", "--format", "json", work.parent / "run.trace", "--whole", "unshare")
    analysis = json.loads(done.stdout)
    commands = {task["id"]: task["command"] for task in analysis["tasks"]}
    wrote = {
        file["path"]: [commands[user["task"]] for user in file["producers"]]
        for file in analysis["files"]
        if file["role"] == "output"
    }
    assert len(wrote) == 12
    for path, (command,) in wrote.items():
        assert f"> {path}" in command and "unshare" in command
    assert sum(not task["engine"] for task in analysis["tasks"]) == 4

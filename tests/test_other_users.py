"""A root user works in directories of another user: files that this user controls are neither run,
read as configuration, nor written. An attack that races is made TIMES times.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.users import OTHER, attacking, needs_root, planting, reachable
from tracehint.collectors.registry import check
from tracehint.hintgen.lint.config import find_config
from tracehint.schemas.plain import ConfiguredPath, open_trusted, read_named

TIMES = 20
# key of tracehint.toml (also names its file) -> commands that use it
ATTACKS = {
    "store": ("locate f", "record -- true", "run -- true", "profile -- true", "place f -- true"),
    "hosts": ("place --store xattr f -- true",),
}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A directory owned by the other user."""
    folder = reachable(tmp_path) / "theirs"
    folder.mkdir()
    os.chown(folder, OTHER, OTHER)
    return folder


def plant(folder: Path, key: str, marker: Path) -> None:
    """Write a project file and a table that it names, which starts a program."""
    (folder / "f").write_text("x")
    (folder / "store.toml").write_text(
        'name = "near"\n[hints]\n"DP=local" = {}\n[commands.c]\nset = ["true", "{options}"]\n'
        'words."DP=local" = {kind = "count", option = ["{}"]}\n'
        f'[locate]\ncall = ["touch", "{marker}"]\nnode = "(x)"\n'
    )
    (folder / "hosts.toml").write_text(
        f'start = ["touch", "{marker}", "{{argv}}"]\n[[host]]\nname = "far"\n'
    )
    lines = [f'{key} = "{key}.toml"\n']
    if key == "store":
        lines.append('hosts = "h"\n')
        (folder / "h").write_text('[[host]]\nname = "localhost"\n')
    (folder / "tracehint.toml").write_text("".join(lines))


def give(folder: Path, *names: str) -> None:
    """Make the other user the owner of the files."""
    for name in names:
        os.chown(folder / name, OTHER, OTHER)


@pytest.mark.slow
@pytest.mark.parametrize("key", ATTACKS)
def test_the_trap_works_for_its_owner(theirs: Path, tmp_path: Path, key: str) -> None:
    """Without this the tests below would prove nothing."""
    marker = tmp_path / "run"
    plant(theirs, key, marker)
    for command in ATTACKS[key]:
        done = tracehint(*command.split(), cwd=theirs)
        assert marker.exists(), (command, done.stderr)
        marker.unlink()


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize(
    "owned", [("tracehint.toml",), ("tracehint.toml", "store.toml", "hosts.toml"), ("table",)]
)
@pytest.mark.parametrize("key", ATTACKS)
def test_configuration_of_another_user_is_named_and_ignored(
    theirs: Path, tmp_path: Path, key: str, owned: tuple[str, ...]
) -> None:
    marker = tmp_path / "run"
    names = tuple(f"{key}.toml" if name == "table" else name for name in owned)
    plant(theirs, key, marker)
    give(theirs, *names)
    for command in ATTACKS[key]:
        done = tracehint(*command.split(), cwd=theirs)
        assert not marker.exists(), command
        assert names[0] in done.stderr and "belongs to another user" in done.stderr


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize("name", ["tracehint.toml", "store.toml"])
@pytest.mark.parametrize("how", ["writable", "group", "link", "pipe"])
def test_what_others_could_have_written_is_ignored(
    theirs: Path, tmp_path: Path, name: str, how: str
) -> None:
    marker = tmp_path / "run"
    plant(theirs, "store", marker)
    path = theirs / name
    if how in ("link", "pipe"):
        path.rename(theirs / "kept")
        (path.symlink_to("kept") if how == "link" else os.mkfifo(path))
    else:
        path.chmod(0o646 if how == "writable" else 0o664)
        os.chown(path, 0, OTHER)
    done = tracehint("locate", "f", cwd=theirs)
    assert done.returncode == 2 and not marker.exists()
    assert f"{name}" in done.stderr and "is ignored" in done.stderr


@pytest.mark.slow
@needs_root
def test_a_table_that_is_exchanged_meanwhile_is_never_used(theirs: Path, tmp_path: Path) -> None:
    """The project file and its table are root's, in a directory of the other user."""
    marker = tmp_path / "run"
    plant(theirs, "store", marker)
    shutil.copy(theirs / "store.toml", theirs / "other.toml")
    give(theirs, "other.toml")
    harmless = (theirs / "store.toml").read_text().replace('"touch"', '"true"')
    (theirs / "store.toml").write_text(harmless)
    with attacking(theirs, "store.toml", "other.toml"):
        for _ in range(TIMES):
            tracehint("locate", "f", cwd=theirs)
            assert not marker.exists()


@needs_root
def test_settings_of_lint_are_read_from_own_files_only(theirs: Path) -> None:
    below = theirs / "below"
    below.mkdir()
    (theirs / "pyproject.toml").write_text("[tool.tracehint.lint]\nignore = ['TP']\n")
    give(theirs, "pyproject.toml")
    found = find_config(below)
    assert found.ignore == () and "pyproject.toml" in found.ignored[0]
    (below / "tracehint.toml").write_text("[lint]\nbaseline = 'accepted.json'\n")
    (below / "accepted.json").write_text("{}")
    assert find_config(below).baseline == str(below / "accepted.json")
    give(below, "accepted.json")
    assert find_config(below).baseline == "" and "accepted.json" in find_config(below).ignored[0]


@needs_root
def test_init_neither_uses_nor_keeps_the_files_of_another_user(theirs: Path) -> None:
    (theirs / "hosts.toml").write_text('[[host]]\nname = "a"\n')
    give(theirs, "hosts.toml")
    done = tracehint("init", cwd=theirs)
    assert "hosts.toml: belongs to another user: it is ignored" in done.stdout
    assert "hosts =" not in (theirs / "tracehint.toml").read_text()
    (theirs / "tracehint.toml").write_text('[lint]\nignore = ["TP"]\n')
    give(theirs, "tracehint.toml")
    done = tracehint("init", "--force", cwd=theirs)
    assert done.returncode == 2 and "belongs to another user" in done.stderr


@pytest.mark.parametrize("program", ["sh", "bash", "python3", "perl", "env", "xargs", "busybox"])
def test_a_configured_table_names_no_interpreter(tmp_path: Path, program: str) -> None:
    plant(tmp_path, "store", tmp_path / "run")
    table = tmp_path / "store.toml"
    table.write_text(table.read_text().replace('"touch"', f'"{program}"'))
    done = tracehint("locate", "f", cwd=tmp_path)
    assert done.returncode == 2 and f"{program} starts other programs" in done.stderr
    typed = tracehint("locate", "--store", "./store.toml", "f", cwd=tmp_path)
    assert "starts other programs" not in typed.stderr


def test_a_typed_file_may_be_anything(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("a = 1")
    (tmp_path / "link.toml").symlink_to("a.toml")
    assert read_named(tmp_path / "link.toml", 99) == b"a = 1"
    with pytest.raises(OSError, match="is a symbolic link"):
        read_named(ConfiguredPath(tmp_path / "link.toml"), 99)


def test_the_private_group_of_the_owner_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with umask 002; a group with other members may not."""
    import grp

    path = tmp_path / "tracehint.toml"
    path.touch()
    path.chmod(0o664)
    os.close(open_trusted(path))
    info = grp.getgrgid(os.getegid())
    more = grp.struct_group((info.gr_name, "x", info.gr_gid, ["somebody"]))
    monkeypatch.setattr(grp, "getgrgid", lambda _: more)
    with pytest.raises(OSError, match="other users may write"):
        open_trusted(path)


def test_configuration_that_cannot_be_opened_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "tracehint.toml").mkdir()
    done = tracehint("explain", "TP001", cwd=tmp_path)
    assert done.returncode == 0 and "tracehint.toml" in done.stderr


def require(collector: str) -> None:
    """Skip the test if this collector cannot run."""
    found = check(collector)
    if not found.usable:
        pytest.skip(f"{found.reason}: {found.remedy}")


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the modification time and content of every file below a directory."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes()) for p in files}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A bundle of root that the other user cannot access."""
    folder = tmp_path / "victim"
    done = tracehint("record", "-o", folder / "run.trace", "--", "true")
    assert done.returncode == 0, done.stderr
    for name in ("spool", "raw"):
        (folder / "run.trace" / name).mkdir()
    folder.chmod(0o700)
    return folder


WAITING = ("sh", "-c", "touch started; while [ ! -e go ]; do sleep 0.01; done; exit 3")


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize("what", ["bundle", "parent"])
@pytest.mark.parametrize("how", ["ebpf", "strace", "profile", "run"])
def test_a_link_in_place_of_the_bundle_leads_no_output_elsewhere(
    theirs: Path, victim: Path, how: str, what: str
) -> None:
    """While the command runs, the bundle or a directory above it becomes a link to root's."""
    command = [how] if how in ("profile", "run") else ["record", "--collector", how]
    require("ebpf" if how in ("profile", "run") else how)
    folder = theirs / "d"
    if how == "run":
        shutil.copytree(victim / "run.trace", victim / ".tracehint/runs/0001.trace")
        (victim / ".tracehint").chmod(0o700)
    before = tree(victim)
    named = {"run": ".tracehint", "profile": "run.trace"}.get(how, "run.trace")
    moved, target = (named, victim / named) if what == "bundle" else ("", victim)
    for number in range(TIMES // 5):
        folder.mkdir()
        os.chown(folder, OTHER, OTHER)
        output = [] if how == "run" else ["-o", str(folder / "run.trace")]
        with planting(theirs, f"d/{moved}".rstrip("/"), target):
            done = tracehint(*command, *output, "--", *WAITING, cwd=folder)
        assert done.returncode == 3, done.stderr
        assert tree(victim) == before, (number, done.stderr)
        for path in (theirs / "d.moved", folder):
            path.unlink() if path.is_symlink() else shutil.rmtree(path, ignore_errors=True)

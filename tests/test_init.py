"""`tracehint init`: engine, store by mount, nodes by sinfo or a file; and what it prints."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support import slurm
from tests.support.cli import tracehint
from tests.support.hints import rule, save
from tracehint.adapters.creation.journal import Journal
from tracehint.adapters.creation.outcome import summary
from tracehint.adapters.project.config import find_config
from tracehint.adapters.project.discover import discover, project_text, store_of
from tracehint.adapters.stores.registry import open_store
from tracehint.cli import main
from tracehint.collectors import hostinfo

# mountinfo(5) of real mounts: the rest of the line after the mount point, and the store's name
MOUNTS = [
    ("rw,relatime shared:9 - fuse.mfs 10.0.0.1:9421 rw,user_id=0", "moosefs"),
    ("rw,relatime - fuse mfs#10.0.0.1:9421 rw,user_id=0", "moosefs"),
    ("rw,relatime - ceph 10.0.0.1:6789,10.0.0.2:6789:/ rw,name=admin", "cephfs"),
    ("rw,nosuid - fuse.ceph-fuse ceph-fuse rw,user_id=0", "cephfs"),
    ("rw,noatime - lustre 10.0.0.1@o2ib:10.0.0.2@o2ib:/work rw,flock", "lustre"),
    ("rw,relatime - nfs server:/export rw,vers=3", "nfs"),
    ("rw,relatime - nfs4 server:/export rw,vers=4.2", "nfs"),
    ("rw,relatime - gpfs gpfs0 rw", "storage-scale"),
    ("rw,relatime - beegfs beegfs_nodev rw,cfgFile=/etc/beegfs/c.conf", "beegfs8"),
    ("rw,relatime - fuse.glusterfs host:/vol rw", "glusterfs"),
    ("rw,relatime - fuse.dfuse dfuse rw", "daos"),
    ("rw,relatime - fuse.juicefs JuiceFS:my rw", "juicefs"),
    ("rw,relatime - fuse.seaweedfs host:8888:/ rw", "seaweedfs"),
    ("rw,relatime - ext4 /dev/sda1 rw", "local"),
    ("rw,relatime - xfs /dev/sdb rw", "local"),
    ("rw,relatime - overlay overlay rw,lowerdir=/a", "local"),
    ("rw - fuse.somethingelse x rw", ""),
]


def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> list[dict[str, Any]]:
    """Return the mount table, parsed from these lines in a file."""
    file = tmp_path / "mountinfo"
    file.write_text("".join(f"{25 + i} 1 0:{i} / {line}\n" for i, line in enumerate(lines)))
    monkeypatch.setattr(hostinfo, "Path", lambda _: file)
    found = hostinfo.mounts()
    monkeypatch.undo()
    return found


@pytest.mark.parametrize(("line", "store"), MOUNTS)
def test_the_mount_tells_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, store: str
) -> None:
    folder = tmp_path / "work dir"
    folder.mkdir()
    name = str(folder).replace(" ", r"\040")
    monkeypatch.setenv("PATH", str(tmp_path))
    mounts = table(tmp_path, monkeypatch, "/ rw - ext4 /dev/vda rw", f"{name} {line}")
    assert store_of(folder / "sub", mounts)[0] == store
    assert store_of(tmp_path, mounts)[0] == "local"
    found = discover(folder, mounts)
    assert found.store == (store if store not in ("", "local") else "xattr")
    assert found.local == (store == "local")
    text = project_text(found, {})
    (folder / "tracehint.toml").write_text(text)
    config = find_config(folder)
    assert config is not None and config.values["store"] == found.store
    planned = ("moosefs", "cephfs", "lustre", "storage-scale", "beegfs8")
    assert ("cluster" in config.values) == (store in planned)


def test_of_mounts_at_one_place_the_last_one_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (f"{tmp_path} rw - nfs4 a:/ rw", f"{tmp_path} rw - ceph b:/ rw", "/ rw - ext4 x rw")
    assert store_of(tmp_path, table(tmp_path, monkeypatch, *lines))[0] == "cephfs"


def test_the_tools_tell_which_beegfs_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = table(tmp_path, monkeypatch, "/ rw - beegfs beegfs_nodev rw")
    (tmp_path / "beegfs-ctl").write_text("#!/bin/sh\n")
    (tmp_path / "beegfs-ctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert store_of(tmp_path, mounts)[0] == "beegfs7"


SINFO = "a idle\nb mixed\nc idle*\nd down\ne drained\nf allocated\na idle\ng idle~\nh completing\n"
PBSNODES = "".join(
    f"{node}\n     Mom = {node}.x\n     ntype = PBS\n     state = {state}\n     pcpus = 4\n\n"
    for node, state in (
        ("a", "free"), ("b", "job-exclusive"), ("c", "down"), ("d", "free,offline"),
        ("e", "job-busy"), ("f", "state-unknown,down"),
    )
)  # fmt: skip  # a table
BHOSTS = (
    "HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV\n"
    "a                  ok              -      4      0      0      0      0      0\n"
    "b                  closed_Full     -      4      4      4      0      0      0\n"
    "c                  closed_Adm      -      4      0      0      0      0      0\n"
    "d                  unavail         -      4      0      0      0      0      0\n"
)


@pytest.mark.parametrize(
    ("submit", "ask", "answer", "name", "nodes"),
    [
        ("sbatch", "sinfo", SINFO, "Slurm: jobs that COMMAND submits (sbatch)", 5),
        ("qsub", "pbsnodes", PBSNODES, "PBS: jobs that COMMAND submits (qsub -V)", 3),
        ("bsub", "bhosts", BHOSTS, "LSF: jobs that COMMAND submits (bsub)", 2),
    ],
)
def test_the_batch_system_is_named_and_its_nodes_that_answer_counted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    submit: str,
    ask: str,
    answer: str,
    name: str,
    nodes: int,
) -> None:
    (tmp_path / "answer").write_text(answer)
    for program, text in ((submit, ""), (ask, f"/bin/cat '{tmp_path}/answer'")):
        (tmp_path / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert discover(tmp_path, []).nodes == nodes
    assert main(["init", "--dry-run", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert name in said
    assert f"{nodes} nodes can run jobs, as {ask} reports" in said
    (tmp_path / ask).write_text("#!/bin/sh\nexit 1\n")
    assert discover(tmp_path, []).nodes == 0


@pytest.mark.parametrize(
    ("name", "text", "nodes"),
    [
        ("hosts.toml", '[[host]]\nname = "a"\n[[host]]\nname = "b"\n', 2),
        ("hostfile", "a slots=4\nb slots=4\n\n# c\na slots=2\n", 2),
        ("machinefile", "x\ny\nz\n", 3),
    ],
)
def test_a_file_names_the_nodes(tmp_path: Path, name: str, text: str, nodes: int) -> None:
    (tmp_path / name).write_text(text)
    done = tracehint("init", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{nodes} nodes in {name}" in done.stdout
    config = find_config(tmp_path)
    assert config is not None
    own = name == "hosts.toml"
    assert config.parameters().get("hosts") == (tmp_path / name if own else None)
    if own:  # `place` no longer needs --hosts
        done = tracehint("place", "--part", "1", cwd=tmp_path)
        assert done.stdout == "b\n", done.stderr


def test_a_disk_keeps_hints_and_nothing_acts_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Snakefile").write_text("")
    for kind, words in (
        (
            "ext4 /dev/sda",
            ("a disk of one node: it stores hints and does not act", "tracehint place"),
        ),
        ("nfs4 a:/", ("does not support: DP=local", "instead: staging into node-local scratch")),
        ("lustre a:/", ("not run by this project", "supports: DP=collocation")),
    ):
        mounts = table(tmp_path, monkeypatch, f"/ rw - {kind} rw")
        monkeypatch.setattr("tracehint.adapters.project.discover.mounts", lambda m=mounts: m)
        assert main(["init", "--dry-run", str(tmp_path)]) == 0
        said = capsys.readouterr().out
        assert all(word in said for word in words), said
        assert "Next: tracehint run -- snakemake -c4" in said


def test_run_sets_hints_in_the_words_of_the_store_that_it_is_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mounts = table(tmp_path, monkeypatch, "/ rw - nfs4 server:/ rw")
    monkeypatch.setattr("tracehint.adapters.project.discover.mounts", lambda: mounts)
    monkeypatch.chdir(tmp_path)
    hints = save(tmp_path, rule("{name}.txt", DP="local"))
    monkeypatch.setattr("tracehint.commands.run.die_like", lambda ended: ended.status)
    main(["run", "--no-record", "--hints", str(hints), "--", sys.executable, "-c", "0"])
    assert "store nfs: " in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.engine
def test_init_counts_the_nodes_of_a_real_slurm(tmp_path: Path) -> None:
    if slurm.missing():
        pytest.skip(slurm.missing())
    with slurm.cluster(("node1", "node2")) as cluster:
        done = cluster.run(sys.executable, "-m", "tracehint", "init", cwd=tmp_path)
    assert "2 nodes can run jobs, as sinfo reports" in done.stdout
    assert done.returncode == 0


def test_without_storage_classes_the_administrators_commands_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tracehint.adapters.project import discover as surroundings

    mount = {"path": str(tmp_path), "fstype": "fuse.mfs", "source": "mfs#head:9421"}
    monkeypatch.setattr(surroundings, "mounts", lambda: [mount])
    for names, classes in ((["a1", "b2.site"], ""), (["a1"], 'local = "node_{host}"\n')):
        monkeypatch.setattr(surroundings, "map_text", lambda *_, text=classes: text)
        with surroundings.store_here(tmp_path, names) as here:
            assert here.store == "moosefs" and bool(here.places) == bool(classes)
            wanted = [f"mfsscadmin create -m L -K LABEL node_{n[:2]}" for n in names]
            assert [line in here.why for line in wanted] == [not classes] * len(names)


def test_files_without_a_hint_are_told_the_true_reason() -> None:
    hints = {"DP": "local"}
    settings, gaps = open_store("moosefs").translate(hints, "file")
    assert not settings
    unsaid = {"state": "unsaid", "key": "", "why": gaps[0].reason}
    rows = [{"path": b"/x/%d" % n, **unsaid} for n in range(3)]
    none = Journal([], defaultdict(int))
    reason = "no hint was set on 3 files: no storage class known for DP=local (--map)"
    assert summary(none, rows, 0) == [reason]
    assert summary(none, [], 0) == ["no matching file was created"]


CLASSES = "".join(
    f"node_{n} : 1 ; mode: LOOSE ; create_labels: [{n}] ; keep_labels: [{n}]\n"
    for n in ("n1", "n2")
)
POOLS = '[{"name": "fs", "metadata_pool": "meta", "data_pools": ["data", "node_n1", "node_n2"]}]'
LISTS = {  # mount -> program that lists the nodes' places, its output, how to create one
    "fuse.mfs head:9421": ("mfsscadmin", CLASSES, "create -m L -K LABEL node_"),
    "ceph n1:/": ("ceph", POOLS, "fs add_data_pool FILE_SYSTEM node_"),
}


@pytest.mark.parametrize("mount", LISTS)
def test_init_names_the_classes_of_the_nodes_not_of_the_login_node(
    mount: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool, listing, made = LISTS[mount]
    mounts = table(tmp_path, monkeypatch, f"/ rw - {mount} rw")
    monkeypatch.setattr("tracehint.adapters.project.discover.mounts", lambda: mounts)
    for name, answer in (("sinfo", "n1|idle|0/2/0/2\nn2|mixed|1/1/0/2\n"), (tool, "")):
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '{answer}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert main(["init", "--dry-run", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert f"{tool} {made}n1\n" in said and f"{tool} {made}n2\n" in said
    (tmp_path / tool).write_text(f"#!/bin/sh\nprintf '{listing}'\n")
    assert main(["init", str(tmp_path)]) == 0
    assert made not in capsys.readouterr().out
    assert 'groups = ["node_n1", "node_n2"]' in (tmp_path / "tracehint.map.toml").read_text()

"""anonymize: no word of the owner is left, and the analysis comes out the same."""

from __future__ import annotations

import itertools
import re
import string
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.bundles import RunBuilder
from tests.support.hostile import HOSTILE_NAMES
from tracehint.analyzer.analyze import analyze
from tracehint.analyzer.model import Analysis, Options
from tracehint.cli import main
from tracehint.hintgen.anonymize import _LENGTH, _LETTERS, WORDS, Pseudonyms, replace_words
from tracehint.schemas.manifest import RecordingHost
from tracehint.schemas.redact.values import is_suspicious, literals, suspicious_programs
from tracehint.schemas.store import Bundle, read_bundle
from tracehint.schemas.tables import TABLES


def secret_run(folder: Path) -> Path:
    run = RunBuilder(
        host="alpha.institute.example",
        cwd="/home/margarethe/geheim",
        data_roots=[],
        notes=["stopped at /home/margarethe/x"],
    )
    run.manifest.hosts = [
        RecordingHost(
            "alpha.institute.example",
            site="Heidelberg",
            boot_id="b00t-1d",
            mounts=[{"path": "/home", "fstype": "nfs4", "source": "filer7:/vol/homes"}],
        )
    ]
    driver = run.process(["bash", "/home/margarethe/geheim/pipeline.sh", "--patient=Mustermann"])
    raw = run.file("/home/margarethe/geheim/genome.fasta", size=1 << 20, existed=True)
    total = run.file("/home/margarethe/geheim/summary.tsv", size=4096)
    join = None
    for i in range(4):
        task = run.process(
            ["align", "-t", "4", f"sample_{i:02d}.bam", "token=abcdefgh"], parent=driver,
            start=1 + i, end=2 + i, env={"TRACEHINT_TASK": f"Alignment{i}"},
        )  # fmt: skip  # a table
        out = run.file(f"/home/margarethe/geheim/sample_{i:02d}.bam", size=1 << 20)
        run.read(task, raw, 0, 1 << 20, at=1.2 + i)
        run.write(task, out, 0, 1 << 20, at=1.8 + i)
        join = join or run.process(["collate"], parent=driver, start=10, end=12)
        run.read(join, out, 0, 1 << 20, at=10 + i / 10)
    assert join is not None
    run.write(join, total, 0, 4096, at=11.5)
    run.loss("path_cut", 1)
    return run.save(folder / "secret.trace")


def everything(path: Path) -> bytes:
    bundle = read_bundle(path)
    parts = [repr(t.to_pylist()).encode() for t in bundle.tables.values()]
    return b"\n".join([(path / "manifest.json").read_bytes(), *parts])


def own_words(bundle: Bundle) -> set[bytes]:
    """Words of the original that are no vocabulary, endings, or the recorder's own terms."""
    text = everything(bundle.path)
    own = {w for name in TABLES for w in (name, *TABLES[name].names)}
    words = set(re.findall(rb"[A-Za-z]{5,}", text))
    return {w for w in words if w.decode().lower() not in WORDS and w.decode() not in own} & set(
        re.findall(rb"[A-Za-z]{5,}", SECRETS)
    )


SECRETS = (
    b"alpha institute example margarethe geheim Heidelberg filer homes pipeline patient Mustermann "
    b"genome summary sample align token abcdefgh Alignment collate stopped"
)


def shape(analysis: Analysis) -> Counter[tuple[object, ...]]:
    labels: dict[int, list[tuple[object, ...]]] = {}
    for row in analysis.patterns.to_pylist():
        if row["edge"] is None:
            label = (row["pattern"], row["primary"], round(row["confidence"], 6))
            labels.setdefault(row["file"], []).append(label)
    return Counter(
        (f["role"], f["size_bytes"], tuple(sorted(map(repr, labels.get(f["file"], [])))))
        for f in analysis.files.to_pylist()
    )


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    source, target = secret_run(tmp_path), tmp_path / "shared.trace"
    assert main(["anonymize", str(source), "-o", str(target)]) == 0
    return source, target


def test_no_word_of_the_owner_is_left(pair: tuple[Path, Path]) -> None:
    words = own_words(read_bundle(pair[0]))
    assert len(words) >= 15
    result = everything(pair[1]).lower()
    assert [w for w in words if w.lower() in result] == []
    raw = b"".join(p.read_bytes() for p in pair[1].rglob("*") if p.is_file())
    assert [w for w in words if w in raw] == []


def test_the_analysis_is_the_same(pair: tuple[Path, Path]) -> None:
    before, after = (analyze(read_bundle(p), Options()) for p in pair)
    assert shape(before) == shape(after)
    assert before.edges.num_rows == after.edges.num_rows == 4
    kinds = [
        Counter(Counter(t["type"] for t in a.tasks.to_pylist()).values()) for a in (before, after)
    ]
    assert kinds[0] == kinds[1]


def test_counters_and_endings_stay(pair: tuple[Path, Path]) -> None:
    paths = read_bundle(pair[1]).tables["names"].column("path").to_pylist()
    assert sum(bool(re.search(rb"/[a-z]{8}_0[0-3]\.bam$", p)) for p in paths) == 4
    assert sum(p.startswith(b"/home/") for p in paths) == 6


def test_same_key_gives_same_words(tmp_path: Path) -> None:
    source = secret_run(tmp_path)
    for name in ("a", "b"):
        assert main(["anonymize", str(source), "-o", str(tmp_path / name), "--key", "k"]) == 0
    assert everything(tmp_path / "a") == everything(tmp_path / "b")
    assert main(["anonymize", str(source), "-o", str(tmp_path / "a")]) == 2  # exists


def test_different_words_stay_different() -> None:
    words = Pseudonyms(b"key")
    names = [f"{a}{b}".encode() for a in "abcdefgh" for b in ("xyzzy", "plugh", "frotz")]
    assert len({words.replace(n) for n in names}) == len(names)
    assert words.replace(names[0]) == words.replace(names[0])


@given(
    st.lists(st.text(string.ascii_letters, min_size=9, max_size=30), min_size=1, max_size=4),
    st.binary(min_size=1, max_size=8),
)
def test_new_words_are_never_suspicious(names: list[str], key: bytes) -> None:
    """The redactor reads each suspicious row again, one by one."""
    words = Pseudonyms(key)
    new = [words.replace(name.encode()).decode() for name in names]
    for before, between in itertools.product(
        ("", "/", "-", "--", "7"), ("-", "_", ".", "/", " ", "=")
    ):
        assert not is_suspicious(before + between.join(new) + between)


def test_the_alphabet_spells_nothing_that_the_redactor_looks_for() -> None:
    letters = set(_LETTERS)
    texts = [*literals(), *(name for name in suspicious_programs() if len(name) == _LENGTH)]
    assert [t for t in texts if {c for c in t if c.isalpha()} <= letters] == []
    assert len(letters) ** _LENGTH > 10**10  # two words of a large run hardly ever meet


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_keep_their_punctuation_only(name: bytes) -> None:
    result = Pseudonyms(b"key").replace(name)
    words = re.compile(rb"[A-Za-z0-9\x80-\xff]+")
    assert words.sub(b"", result) == words.sub(b"", name)
    assert result.isascii() or not name.isascii()


@given(st.lists(st.sampled_from([b"/", b".", b"-", b"a", b"bashrc", b"x7", b" ", b"12", b"fits"])))
def test_components_of_a_path_are_as_in_the_whole(parts: list[bytes]) -> None:
    raw = b"".join(parts)
    words = Pseudonyms(b"k")
    assert words.replace(raw) == Pseudonyms(b"k")._replace_token(raw)
    assert words.replace(b"before/" + raw) == Pseudonyms(b"k")._replace_token(b"before/" + raw)


def test_directories_are_changed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    changed = Pseudonyms._replace_token
    monkeypatch.setattr(
        Pseudonyms, "_replace_token", lambda self, raw: (seen.append(raw), changed(self, raw))[1]
    )
    words = Pseudonyms(b"k")
    for n in range(1_000):
        words.replace(b"/deep/in/many/directories/file_%d" % n)
    assert len([raw for raw in seen if raw]) == 1_004
    monkeypatch.setattr("tracehint.hintgen.anonymize._MAX_CACHED", 10)
    for n in range(1_000):
        words.replace(b"/deep/other_%d" % n)
    assert len(words._components) <= 11


_PIECES = [
    *"/.-_ ", "", "0", "7", "42", "00123456", "python3", "python5", "lib64", "lib65", "x86",
    "md5sum", "genome", "Genome", ".fits", ".tile", "a1b2c3d4", "a1b2c3", "\xe9", "-t", "make", "p",
    "sample",
]  # fmt: skip  # a table


@given(st.lists(st.lists(st.sampled_from(_PIECES), max_size=7).map("".join), unique=True))
def test_a_column_is_changed_as_its_texts_are_one_by_one(texts: list[str]) -> None:
    raw = [text.encode("latin-1") for text in texts]
    alone = Pseudonyms(b"k")
    assert replace_words(pa.array(raw, pa.binary()), Pseudonyms(b"k")).to_pylist() == [
        alone.replace(text) for text in raw
    ]

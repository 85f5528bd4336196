"""The guard as its compiled wheel holds it: built once for these sources, and its tests run on it.

    python -m tools.compiled        build, then tests/guard on what was built

The wheel is built from the source archive, never in this tree, where compiled modules would stand before
the files they were made of. What is built is kept under $XDG_CACHE_HOME/turncap/compiled. Without a C
compiler the stage skips (exit code 75).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from hashlib import blake2b
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from tools.stages import ROOT, SKIPPED

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turncap" / "compiled"
SWITCH = {"HATCH_BUILD_HOOK_ENABLE_MYPYC": "true"}
TESTS = """
import sys, guard.core, pytest
assert guard.core.__file__.endswith(tuple(sys.argv[1].split(","))), guard.core.__file__
sys.exit(pytest.main(sys.argv[2:]))
"""


class UnavailableError(Exception):
    """What compiling needs is not on this machine."""


def built() -> Path:
    """The folder with the compiled package `guard`, built when these sources never were.

    Raises:
        UnavailableError: there is no C compiler, or Python's headers are missing.
        subprocess.CalledProcessError: the build failed.
    """
    sources = [ROOT / "pyproject.toml", *sorted((ROOT / "guard").rglob("*.py"))]
    digest = blake2b(f"{sys.version} {sysconfig.get_platform()}".encode(), digest_size=8)
    for source in sources:
        digest.update(source.read_bytes())
    folder = CACHE / digest.hexdigest()
    if folder.is_dir():
        return folder
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        raise UnavailableError(f"no C compiler: {compiler} is not installed")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        raise UnavailableError("Python's headers (Python.h) are not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        wheels = Path(scratch) / "wheels"
        subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(wheels), str(ROOT)],
            check=True,
            env={**os.environ, **SWITCH},
        )
        (wheel,) = wheels.glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(Path(scratch) / "unpacked")
        (Path(scratch) / "unpacked").rename(folder)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """That of a process in which `guard` is the compiled one, and all else is this tree's."""
    return {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}


def main() -> int:
    """Build and test."""
    try:
        folder = built()
    except UnavailableError as error:
        print(f"the compiled guard was not tried: {error}")
        return SKIPPED
    print(f"compiled guard: {folder.name}", flush=True)
    suffixes = ",".join(EXTENSION_SUFFIXES)
    tests = [sys.executable, "-c", TESTS, suffixes, "tests/guard", *sys.argv[1:]]
    return subprocess.run(tests, cwd=ROOT, env=environment(folder), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

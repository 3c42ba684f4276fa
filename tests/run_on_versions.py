"""Run the tests of a project of somebody else (tests/host) on each combination of Python, Django
and Celery that the core supports and this machine has. Usage: run_on_versions.py [3.12-6.1-5.7 …]

Each combination has an environment under var/versions, with the wheel and the newest packages that
agree with it. What is left out is printed with its reason.
"""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "var/versions"
PYTHONS = ("3.11", "3.12", "3.13")
DJANGOS = ("5.2", "6.1")
CELERIES = ("5.5", "5.6", "5.7")
OLDEST_PYTHON_OF_DJANGO_6 = "3.12"
PYENV = Path.home() / ".pyenv/versions"


def main(wanted: list[str]) -> int:
    """Test the combinations; return 1 if one fails."""
    failed = []
    for python, django, celery in itertools.product(PYTHONS, DJANGOS, CELERIES):
        name = f"{python}-{django}-{celery}"
        if wanted and name not in wanted:
            continue
        if django.startswith("6") and python < OLDEST_PYTHON_OF_DJANGO_6:
            print_line(f"left out {name}: Django 6 needs Python {OLDEST_PYTHON_OF_DJANGO_6}")
        elif (binary := find_python(python)) is None:
            print_line(f"left out {name}: Python {python} is not on this machine")
        elif not test(name, binary, [f"Django=={django}.*", f"celery[redis]=={celery}.*"]):
            failed.append(name)
    print_line(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


def find_python(version: str) -> str | None:
    """Return the interpreter of this version: of pyenv, or on the path (but no shim of pyenv that
    leads to nothing)."""
    paths = [*sorted(PYENV.glob(f"{version}.*/bin/python"), reverse=True)]
    for path in map(str, [*paths, shutil.which(f"python{version}") or "/"]):
        if os.path.isfile(path) and not subprocess.run([path, "-c", ""]).returncode:
            return path
    return None


def test(name: str, python: str, packages: list[str]) -> bool:
    """Return whether the tests pass in an environment with these packages."""
    environment = FOLDER / name
    shutil.rmtree(environment, ignore_errors=True)
    subprocess.run([python, "-m", "venv", environment], check=True)
    own = environment / "bin/python"
    install = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # Else pip takes the code of a PYTHONPATH for installed.
    without_path = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if subprocess.run([*install, *packages, wheel()], env=without_path).returncode:
        print_line(f"failed {name}: its packages cannot be installed")
        return False
    print_line(f"testing {name}")
    variables = os.environ | {"TESTS_HOST_PYTHON": str(own)}
    tests = [sys.executable, "-m", "pytest", "-q", "-m", "", "tests/host"]
    return subprocess.run(tests, cwd=ROOT, env=variables).returncode == 0


def wheel() -> Path:
    """Return the wheel of this code, built once."""
    if not (built := list(FOLDER.glob("*.whl"))):
        FOLDER.mkdir(parents=True, exist_ok=True)
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "."]
        subprocess.run([*build, "--wheel-dir", FOLDER], cwd=ROOT, check=True)
        shutil.rmtree(ROOT / "build", ignore_errors=True)  # left by setuptools
        built = list(FOLDER.glob("*.whl"))
    return built[0]


def print_line(text: str) -> None:
    print(f"core-versions: {text}", flush=True)


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    sys.exit(main(sys.argv[1:]))

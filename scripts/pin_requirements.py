"""Pin the dependencies of pyproject.toml in requirements.txt and requirements/, with hashes. Pinned
versions are kept; to upgrade one, use `--upgrade-package django`. pip-compile gets the lines of the
extras, as it would drop the markers in pyproject.toml."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLATFORM = ("platform", "builds", "photos", "timeline", "protection", "records")
OPTIONS = ("kafka", "places", "voice", "models", "tracing")
FILES = {
    "requirements.txt": PLATFORM,
    "requirements/optional.txt": (*PLATFORM, *OPTIONS),
    "requirements/dev.txt": (*PLATFORM, *OPTIONS, "django-tasks", "dev"),
}
"""The extras in each file, besides the core. Versions agree with the files before it."""
FLAGS = (
    "--generate-hashes --allow-unsafe --quiet --strip-extras --no-header --no-emit-index-url"
    " --no-emit-find-links --no-emit-trusted-host"
).split()


def lines(project: dict[str, Any], extras: tuple[str, ...]) -> list[str]:
    optional = project["optional-dependencies"]
    every = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    return list(dict.fromkeys(every))


def pin(name: str, requirements: list[str], constraints: list[str], flags: list[str]) -> None:
    """Write the file. Raises CalledProcessError if no versions satisfy all requirements."""
    command = [sys.executable, "-m", "piptools", "compile", *FLAGS, *flags]
    for constraint in constraints:
        command += ["--constraint", constraint]
    subprocess.run(
        [*command, "--output-file", name, "-"],
        cwd=ROOT, input="\n".join(requirements), text=True, check=True,
    )  # fmt: skip
    file = ROOT / name
    file.write_text(file.read_text().replace("-r -\n", "pyproject.toml\n"))


def main(flags: list[str]) -> None:
    """Write all files; `flags` are passed to pip-compile."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    done: list[str] = []
    for name, extras in FILES.items():
        pin(name, lines(project, extras), done, flags)
        done.append(name)


if __name__ == "__main__":
    main(sys.argv[1:])

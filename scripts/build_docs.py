"""Build the pages of docs/ as a site that needs neither a server nor a network: `make docs`. Each
version has a folder of its own, and the folders that are there already stay."""

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parent.parent
LIST = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Tailrace</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
</head><body style="font: 1.1rem sans-serif; margin: 3rem"><h1>Tailrace</h1>
<p>The documentation, by version:</p><ul>
{items}
</ul></body></html>
"""


def build(folder: Path) -> Path:
    """Build the site of this version; warnings, such as a link that leads nowhere, are errors.
    Return its first page. Raises CalledProcessError if it cannot be built."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    target = folder / version
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--builder", "html"]
    subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "-d", folder / ".cache", "docs", target],
        cwd=ROOT, check=True,
    )  # fmt: skip
    write_list(folder)
    return target / "index.html"


def versions(folder: Path) -> list[str]:
    """Return the versions that have been built, the newest first."""
    by_name: dict[str, Version] = {}
    for page in folder.glob("*/index.html"):
        try:
            by_name[page.parent.name] = Version(page.parent.name)
        except InvalidVersion:
            continue
    return sorted(by_name, key=lambda name: by_name[name], reverse=True)


def write_list(folder: Path) -> None:
    """Write the list of versions: as a page, and for the sidebar of each version."""
    names = versions(folder)
    items = "\n".join(f'<li><a href="{name}/index.html">{name}</a></li>' for name in names)
    (folder / "index.html").write_text(LIST.format(items=items))
    oldest_first = json.dumps(names[::-1])
    (folder / "versions.js").write_text(f"window.TAILRACE_VERSIONS = {oldest_first};\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "var" / "docs", metavar="FOLDER")
    try:
        print(build(parser.parse_args().to.resolve()))
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)

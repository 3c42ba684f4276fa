"""How Sphinx builds these pages: `make docs`."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

project = "Tailrace"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_parser", "sphinx_copybutton"]
templates_path = ["templates"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"Tailrace {version}"
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_copy_source = False
html_show_copyright = False
html_use_index = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "versions.html",
        "sidebar/scroll-end.html",
    ]
}

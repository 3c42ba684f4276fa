"""Download the suites, adapt them to our backend, and run them: once with the package django-tasks
on the installed Django, and once with Django 6's own framework, from its source distribution."""

import argparse
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "var" / "django-tasks-suite"
SOURCES = ("Django==6.0.*", "django-tasks==0.12.0", "django-tasks-db==0.13.0")
"""The source distribution of django-tasks brings no tests: Django's are the same ones."""
STAND_INS = "tests.django_tasks_suite.stand_ins"
FILES = {
    "django-6*/tests/tasks/tasks.py": "tasks.py",
    "django-6*/tests/tasks/test_tasks.py": "test_tasks.py",
    "django-6*/tests/tasks/test_dummy_backend.py": "test_dummy_backend.py",
    "django-6*/tests/tasks/test_immediate_backend.py": "test_immediate_backend.py",
    "django_tasks_db-*/tests/tests.py": "test_database_backend.py",
}
REPLACED = (
    (r"django\.tasks\.backends\.(dummy|immediate)\b", STAND_INS),
    (r"django_tasks\.backends\.(dummy|immediate)\b", STAND_INS),
    (r"django_tasks_db(\.\w+)* import", f"{STAND_INS} import"),
    (r'"django_tasks_db\.DatabaseBackend"', '"tailrace.django_tasks.Backend"'),
    (r"uuid\.UUID\(result\.id\)\.version, 4", "result.id.isdecimal(), True"),  # the id of a job
    (r"This task failed due to", "This Task failed due to"),
    (r"from tests import tasks", "from tasks import tasks"),
    (r"\btests\.tasks\.", "tasks.tasks."),
    (r"\bSimpleTestCase\b", "TestCase"),  # our results are in the database
    (r"available_apps = \[\]", "pass"),
    (r"call_command,\s+\"db_worker\",", "work,"),
    (r"self\.assertNumQueries\(", "uncounted("),  # of another worker
    (r"^from django\.test import .*TestCase", rf"from {STAND_INS} import uncounted, work\n\g<0>"),
)
OF_PACKAGE = (
    (r"\bdjango\.tasks\b", "django_tasks"),
    (r"\bInvalidTaskBackend\b(?!Error)", "InvalidTaskBackendError"),
    (r"\bInvalidTask\b(?!Error)", "InvalidTaskError"),
    (r"async Tasks\.", "async tasks."),
)
"""The package has the same names, except for these."""


def download() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    for source in SOURCES:  # Django 6 asks for Python 3.12, and its tasks run on 3.11
        subprocess.run([*pip, "--ignore-requires-python", source], cwd=FOLDER, check=True)
    for path in FOLDER.glob("*.tar.gz"):
        with tarfile.open(path) as archive:
            archive.extractall(FOLDER, filter="data")


def adapt(target: Path, *, package: bool) -> None:
    """Write the suites to `target / "tasks"`, the package name that Django's tests expect."""
    (target / "tasks").mkdir(parents=True, exist_ok=True)
    (target / "tasks" / "__init__.py").touch()
    (target / "conftest.py").write_text("from tests.django_tasks_suite.plugin import *\n")
    for pattern, name in FILES.items():
        [source] = FOLDER.glob(pattern)
        text = source.read_text()
        for old, new in (*REPLACED, *(OF_PACKAGE if package else ())):
            text = re.sub(old, new, text, flags=re.MULTILINE)
        (target / "tasks" / name).write_text(text)


def run(target: Path, *path: Path) -> int:
    places = [*path, ROOT / "src", ROOT]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))}
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(target)]
    command += ["-o", "faulthandler_timeout=60"]
    return subprocess.run(command, cwd=ROOT, env=env).returncode


def main() -> int:
    argparse.ArgumentParser(prog="django-tasks-suite", description=__doc__).parse_args()
    download()
    [django] = FOLDER.glob("django-6*/")
    adapt(FOLDER / "of_package", package=True)
    adapt(FOLDER / "of_django", package=False)
    print("With the package django-tasks:", flush=True)
    failed = run(FOLDER / "of_package")
    print(f"With {django.name}:", flush=True)
    return run(FOLDER / "of_django", django) or failed


if __name__ == "__main__":
    sys.exit(main())

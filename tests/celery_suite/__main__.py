"""Download Celery's source distribution, adapt its integration suite, and run it with a worker
process on a database of its own: with our task class, or with --plain with Celery's on Redis, which
shows what the suite finds without us. Words after the options are handed to pytest, such as -k."""

import argparse
import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import psycopg
import redis

from bench.servers import dsn, redis_url
from tailrace.config.devserver import embedded
from tests.addresses import address, key_space

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "var" / "celery-suite"
SUITE = FOLDER / "suite"
DATABASE = "tailrace_celery_suite"
DURABLE, PLAIN = "tailrace.celery:Task", "celery.app.task:Task"
FILES = ("canvas_helpers.py", *(f"integration/{name}.py" for name in ("test_tasks", "test_canvas")))
REPLACED = (
    # The embedded Valkey has a socket and no port.
    (r"StrictRedis\(host=host, port=port", 'StrictRedis.from_url(os.environ["SUITE_REDIS"]'),
    # The worker is another process: ask it, and not the memory of this one.
    (r"assert result\.id in worker_state\.successful_requests", "assert has_run(result)"),
    (r"worker_state\.revoked_stamps\.clear\(\)", "clear_revoked_stamps()"),
    (
        r"^from celery\.worker import state as worker_state",
        "from tests.celery_suite.plugin import clear_revoked_stamps, has_run",
    ),
    # The embedded Valkey has a URL of another kind.
    (r"TEST_BACKEND\.startswith\('redis://'\)", "TEST_BACKEND.startswith('redis')"),
    # Twenty times these wait ten seconds for what must not come.
    (r"(raises\(TimeoutError\):\n(?: +#.*\n)? +await_redis_echo\(.*timeout=)10\b", r"\g<1>2"),
    # These hear task_received, and look at what the tasks have written: the latter applies.
    (r"^ +assert assertion_result\n(?= +redis_messages = )", ""),
)
OF_TASKS = (
    # As in a project with base classes of its own: they are made of the durable class.
    (r"^from celery import Signature, Task,", "from celery import current_app, Signature,"),
    (r"\(Task\):", "(current_app.Task):"),
    # The fixture `celery_class_tasks` does it for a worker in the same process.
    (r"\Z", "\ncurrent_app.register_task(ClassBasedAutoRetryTask())\n"),
)
CONFTEST = (
    "import tests.celery_suite.plugin  # first: it sets Django up\n",
    "\nfrom tests.celery_suite.plugin import *  # its worker, its app and its bounds\n",
)
INI = """[pytest]
python_classes = test_*
markers =
    flaky: of pytest-rerunfailures; nothing is run again here
    timeout: of pytest-timeout; the plugin has a limit of its own
faulthandler_timeout = 300
faulthandler_exit_on_timeout = true
"""


def download() -> Path:
    """Download the source distribution of the installed Celery; return its folder."""
    name = f"celery-{version('celery')}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    archive = FOLDER / f"{name}.tar.gz"
    if not archive.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        source = f"celery=={version('celery')}"
        subprocess.run([*pip, "--no-binary", ":all:", source], cwd=FOLDER, check=True)
    with tarfile.open(archive) as opened:
        opened.extractall(FOLDER, filter="data")
    return FOLDER / name


def adapt(source: Path) -> None:
    """Write the suite to SUITE as the package `t`, the name that its tests expect."""
    target = SUITE / "t"
    (target / "integration").mkdir(parents=True, exist_ok=True)
    for name in ("__init__.py", "integration/__init__.py"):
        (target / name).touch()
    (SUITE / "pytest.ini").write_text(INI)
    used = set[str]()
    for name in FILES:
        text = _replaced((source / "t" / name).read_text(), REPLACED, used)
        (target / name).write_text(text)
    tasks = (source / "t/integration/tasks.py").read_text()
    (target / "integration/tasks.py").write_text(_replaced(tasks, REPLACED + OF_TASKS, used))
    first, last = CONFTEST
    conftest = (source / "t/integration/conftest.py").read_text()
    (target / "integration/conftest.py").write_text(first + conftest + last)
    if unused := [old for old, _new in REPLACED + OF_TASKS if old not in used]:
        sys.exit(f"celery-suite: {source.name} has nothing to adapt by: {', '.join(unused)}")


def _replaced(text: str, pairs: tuple[tuple[str, str], ...], used: set[str]) -> str:
    """Return the text with these patterns replaced, and add those that occur to `used`."""
    for old, new in pairs:
        text, count = re.subn(old, new, text, flags=re.MULTILINE)
        used |= {old} if count else set()
    return text


def environment(task: str) -> dict[str, str]:
    """Start the embedded engines where no URL is given, and make an empty database. Return the
    variables of the processes of the project."""
    database, broker = os.environ.get("DATABASE_URL", ""), os.environ.get("BROKER_URL", "")
    embedded.ensure(FOLDER, embedded.Selection(postgres=not database, valkey=not broker))
    database = database or address(embedded.database(FOLDER))
    if not broker:
        broker = embedded.broker_url(FOLDER)
        redis.Redis.from_url(redis_url(broker)).flushall()  # of an earlier run
    with psycopg.connect(dsn(database), autocommit=True) as session:
        session.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        session.execute(f"CREATE DATABASE {DATABASE}")
    results = key_space(broker, "gw0")
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (SUITE, ROOT / "src", ROOT))),
        "DJANGO_SETTINGS_MODULE": "tests.celery_suite.project.settings",
        "CELERY_SUITE_TASK": task,
        "DATABASE_URL": re.sub(r"/\w+(\?|$)", rf"/{DATABASE}\1", database, count=1),
        "TEST_BROKER": broker,
        "TEST_BACKEND": results,
        "SUITE_REDIS": redis_url(results),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="celery-suite", description=__doc__)
    parser.add_argument("--plain", action="store_true", help="with Celery's own task class")
    parser.add_argument("--seconds", default="90", help="limit of one test; default: 90")
    arguments, words = parser.parse_known_args()
    adapt(download())
    variables = environment(PLAIN if arguments.plain else DURABLE)
    variables["CELERY_SUITE_SECONDS"] = arguments.seconds
    migrate = [sys.executable, "-m", "django", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=ROOT, env=variables, check=True)
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:django"]
    pytest += ["-p", "no:asyncio"]
    return subprocess.run([*pytest, *words, str(SUITE)], cwd=ROOT, env=variables).returncode


if __name__ == "__main__":
    sys.exit(main())

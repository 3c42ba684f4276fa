"""The embedded engines: found, started, left by the last user, and recovered after kill -9."""

import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from tailrace.config.devserver import embedded
from tailrace.config.devserver.engine import Account, EngineError
from tailrace.config.devserver.valkey import Valkey
from tests import forks
from tests.kit import wait_until

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]

# A process that uses the engines until its input ends.
USER = """
import sys
from pathlib import Path
from tailrace.config.devserver import embedded
embedded.ensure(Path(sys.argv[1]))
print("up", flush=True)
sys.stdin.read()
"""


@contextmanager
def new_folder() -> Iterator[Path]:
    """A var folder that any user may enter; nothing of it runs or stays afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="tr-"))
    folder.chmod(0o755)
    yield folder
    end_engines(folder)
    shutil.rmtree(embedded.Folders.of(folder).home, ignore_errors=True)
    shutil.rmtree(embedded.Folders.of(folder).sockets, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def new_var() -> Iterator[Path]:
    """A folder in which no engine has run."""
    with new_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def var_of_module() -> Iterator[Path]:
    with new_folder() as folder:
        leave(start_user(folder))
        yield folder


@pytest.fixture
def var(var_of_module: Path) -> Iterator[Path]:
    """A folder whose engines have run, and do not at the moment."""
    yield var_of_module
    end_engines(var_of_module)


def end_engines(var: Path) -> None:
    embedded.stop(var)
    kill(engines_of(var))


def engines_of(var: Path) -> list[psutil.Process]:
    """Every living process that an engine of this folder runs in."""
    paths = embedded.Folders.of(var)
    folders = (str(paths.home), str(paths.sockets))
    engines = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            ours = any(folder in word for word in words for folder in folders)
            if ours and any(name in words[0] for name in ("postgres", "valkey-server")):
                engines += [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:  # PostgreSQL's own workers come and go
            continue
    return engines


def kill(processes: list[psutil.Process]) -> None:
    """Kill -9 those that still run."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def postmasters(var: Path) -> set[int]:
    """The pids of the servers themselves: PostgreSQL without its children, and Valkey."""
    engines = engines_of(var)
    pids = {process.pid for process in engines}
    servers = set()
    for process in engines:
        with suppress(psutil.NoSuchProcess):
            servers |= {process.pid} if process.ppid() not in pids else set()
    return servers


def start(var: Path) -> subprocess.Popen[str]:
    """A process that uses the engines of `var` as soon as they run."""
    return forks.Fork(
        ["-c", USER, str(var)],
        cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def start_user(var: Path) -> subprocess.Popen[str]:
    """A process that uses the engines of `var`, once they run."""
    process = start(var)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def leave(process: subprocess.Popen[str]) -> None:
    """End a user kindly."""
    process.communicate(timeout=300)
    assert process.returncode == 0


def database(var: Path) -> psycopg.Connection:
    """A connection to the embedded database of `var`."""
    paths = embedded.Folders.of(var)
    return psycopg.connect(
        host=str(paths.sockets),
        port=embedded.PORT,
        user="postgres",
        dbname=embedded.DATABASE,
        autocommit=True,
    )


def valkey(var: Path) -> redis.Redis:
    """A client of the embedded Valkey of `var`."""
    return redis.Redis(unix_socket_path=str(embedded.Folders.of(var).sockets / "valkey.sock"))


def test_both_engines_serve_and_are_durable_where_it_matters(new_var: Path) -> None:
    user = start_user(new_var)
    with database(new_var) as connection:
        for extension in ("pg_trgm", "vector"):
            connection.execute(f"CREATE EXTENSION {extension}")
        row = connection.execute(
            "SELECT current_setting('fsync'), current_setting('listen_addresses'),"
            " current_setting('max_connections')"
        ).fetchone()
    assert row == ("on", "", "100")
    assert valkey(new_var).ping() is True
    assert valkey(new_var).config_get("port")["port"] == "0"
    leave(user)


def test_the_last_user_stops_them_and_not_one_before(var: Path) -> None:
    first, second = start_user(var), start_user(var)
    leave(first)
    assert valkey(var).ping() is True
    with database(var) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    leave(second)
    wait_until(lambda: not engines_of(var))


def test_a_second_start_finds_the_running_ones(var: Path) -> None:
    first = start_user(var)
    before = postmasters(var)
    second = start_user(var)
    with database(var) as connection:
        assert connection.execute("SELECT count(*) FROM pg_stat_activity").fetchone()
    assert postmasters(var) == before
    leave(first)
    leave(second)


def test_many_first_starts_at_once_make_one_pair_of_engines(new_var: Path) -> None:
    processes = [start(new_var) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
    assert len(postmasters(new_var)) == 2
    for process in processes:
        leave(process)
    wait_until(lambda: not engines_of(new_var))


def test_kill_9_of_everything_loses_nothing_committed(var: Path) -> None:
    user = start_user(var)
    with database(var) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        connection.execute("INSERT INTO kept VALUES (42)")
    killed = engines_of(var)
    user.kill()
    user.wait()
    kill(killed)
    wait_until(lambda: not engines_of(var))
    pid_file = embedded.Folders.of(var).home / "postgres" / "cluster" / "postmaster.pid"
    assert pid_file.exists()
    user = start_user(var)
    with database(var) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (42,)
    assert valkey(var).ping() is True
    leave(user)


def test_after_kill_9_of_users_the_engines_are_taken_over(var: Path) -> None:
    user = start_user(var)
    before = {process.pid for process in engines_of(var)}
    user.kill()
    user.wait()
    assert valkey(var).ping() is True
    user = start_user(var)
    assert before & {process.pid for process in engines_of(var)}
    leave(user)
    wait_until(lambda: not engines_of(var))


def test_a_stale_pid_file_does_not_prevent_a_start(var: Path) -> None:
    paths = embedded.Folders.of(var)
    stranger = os.getpid()
    pid_file = paths.home / "postgres" / "cluster" / "postmaster.pid"
    pid_file.write_text(f"{stranger}\n/elsewhere\n1\n{embedded.PORT}\n\n\n  1  1\nready\n")
    (paths.home / "valkey" / "valkey.pid").write_text(f"{stranger}\n")
    user = start_user(var)
    with database(var) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    leave(user)
    assert psutil.pid_exists(stranger)


def test_a_forked_child_does_not_stop_the_engines_of_its_parent(var: Path) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom tailrace.config.devserver import embedded\n"
        "embedded.ensure(Path(sys.argv[1]))\n"
        "child = os.fork()\n"
        "if not child: sys.exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print('up' if embedded._engines(embedded.Folders.of(Path(sys.argv[1])),"
        " embedded.Selection())[1].is_ready() else 'stopped')\n"
    )
    done = forks.run(["-c", code, str(var)], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "up\n", done.stderr
    wait_until(lambda: not engines_of(var))


def test_a_terminal_interrupt_reaches_no_engine(var: Path) -> None:
    user = start_user(var)
    own_group = os.getpgid(user.pid)
    assert all(os.getpgid(process.pid) != own_group for process in engines_of(var))
    leave(user)


def test_a_deep_folder_gets_its_sockets_in_a_short_one(new_var: Path) -> None:
    deep = new_var / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    assert len(str(embedded.Folders.of(deep).sockets)) < embedded.SOCKET_PATH_LIMIT
    user = start_user(deep)
    assert valkey(deep).ping() is True
    assert engines_of(deep)
    leave(user)
    assert not engines_of(deep)
    shutil.rmtree(embedded.Folders.of(deep).sockets)


def test_roots_engines_move_out_of_a_closed_folder(new_var: Path) -> None:
    new_var.chmod(0o700)
    home = embedded.Folders.of(new_var).home
    if os.geteuid() != 0:
        assert home == new_var / "engines"
        return
    assert new_var not in home.parents
    done = forks.run(["-c", USER, str(new_var)], cwd=ROOT, capture_output=True, text=True, input="")
    assert done.returncode == 0
    assert str(home) in done.stderr
    assert (home / "postgres" / "cluster" / "PG_VERSION").exists()


def test_the_folder_of_the_sockets_is_private(var: Path) -> None:
    user = start_user(var)
    mode = embedded.Folders.of(var).sockets.stat().st_mode
    assert stat.S_IMODE(mode) == 0o700
    leave(user)


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        with pytest.raises(EngineError, match="belongs to another user"):
            Account().claim_folder(Path("/usr"))
        return
    tmp_path.chmod(0o755)
    os.chown(tmp_path, 1, 1)
    with pytest.raises(EngineError, match="set TAILRACE_VAR"):
        Account.unprivileged().claim_folder(tmp_path)


def test_without_wheels_the_error_names_two_variables(tmp_path: Path) -> None:
    class Missing(Valkey):
        package = "a_package_that_is_not_there"

    with pytest.raises(EngineError, match=r"DATABASE_URL and BROKER_URL"):
        _ = Missing(tmp_path, tmp_path, Account()).binary


@contextmanager
def other_text(file: Path, text: str) -> Iterator[None]:
    """Let the file of an engine have this text for a while."""
    kept = file.read_text()
    file.write_text(text)
    try:
        yield
    finally:
        file.write_text(kept)


def test_an_engine_that_cannot_start_says_why(var: Path) -> None:
    cluster = embedded.Folders.of(var).home / "postgres" / "cluster"
    started = time.monotonic()
    with (
        other_text(cluster / "postgresql.conf", "no such setting\n"),
        pytest.raises(EngineError, match=r"postgres does not start: .*postgresql\.conf"),
    ):
        embedded.ensure(var)
    assert time.monotonic() - started < 60


def test_files_of_another_postgresql_are_refused_with_a_way_out(var: Path) -> None:
    version = embedded.Folders.of(var).home / "postgres" / "cluster" / "PG_VERSION"
    with (
        other_text(version, "15\n"),
        pytest.raises(EngineError, match="created by PostgreSQL 15"),
    ):
        embedded.ensure(var)


def test_nothing_wanted_starts_nothing(new_var: Path) -> None:
    embedded.ensure(new_var, embedded.Selection(postgres=False, valkey=False))
    assert not embedded.Folders.of(new_var).home.exists()
    assert embedded.stop(new_var) is False


def test_a_stop_by_signal_leaves_no_pid_file(var: Path) -> None:
    """Also where SIGINT is ignored, as in a job in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        end_by_signal(var)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN, "nothing has set its own handler"
    finally:
        signal.signal(signal.SIGINT, before)


def end_by_signal(var: Path) -> None:
    leave(start_user(var))
    home = embedded.Folders.of(var).home
    assert not (home / "postgres" / "cluster" / "postmaster.pid").exists()
    assert not (home / "valkey" / "valkey.pid").exists()

"""What another user of the machine gets of an installation: no file in var/, and no database."""

import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tailrace.config.devserver import embedded
from tailrace.environment import private_files
from tests import forks
from tests.config.test_embedded import leave, start_user
from tests.kit import ROOT

pytestmark = pytest.mark.once


@pytest.fixture
def var() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="tr-"))
    folder.chmod(0o755)
    yield folder
    embedded.stop(folder)
    shutil.rmtree(embedded.folder(folder), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def open_to_others(folder: Path) -> list[str]:
    """What others may read, write or list."""
    return [
        f"{path} {stat.filemode(path.lstat().st_mode)}"
        for path in (folder, *folder.rglob("*"))
        if path.lstat().st_mode & 0o066 and not path.is_symlink()
        if "packages" not in path.parts and path.suffix != ".conf"
    ]


def test_another_user_does_not_become_the_databases_superuser(var: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    user = start_user(var)
    sockets = embedded.Folders.of(var).sockets
    # The server's own user enters the folder of the sockets, as does whoever else runs as nobody.
    for name in ("postgres", "root", "nobody"):
        got = _as_nobody(sockets, name)
        assert "inside" not in got
        assert "authentication failed" in got or "no password supplied" in got, got
    with psycopg.connect(**_own(sockets)) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("postgres",)
    leave(user)


def test_an_existing_cluster_that_trusted_everybody_no_longer_does(var: Path) -> None:
    leave(start_user(var))
    old = embedded.folder(var) / "postgres" / "cluster" / "pg_hba.conf"
    old.write_text("local all all trust\nhost all all 0.0.0.0/0 trust\n")
    (embedded.folder(var) / "pg_hba.conf").unlink()
    user = start_user(var)
    with psycopg.connect(**_own(embedded.Folders.of(var).sockets)) as connection:
        rules = connection.execute("SELECT DISTINCT auth_method FROM pg_hba_file_rules").fetchall()
    assert {method for (method,) in rules} == {"peer", "scram-sha-256"}
    leave(user)


def _own(sockets: Path) -> dict:
    return {"host": str(sockets), "port": embedded.PORT, "user": "postgres", "dbname": "postgres"}


BOOT = """
from tailrace.config.startup import boot
boot.start("created")
import django; django.setup()
from tailrace.config.startup import setup
setup.make_folders()
setup.flower_auth()
from pathlib import Path
from django.conf import settings
(settings.VAR_DIR / "run.log").write_text("written by a process")
"""


def test_what_a_process_writes_is_private(var: Path) -> None:
    own = var / "deep" / "var"
    variables = {"TAILRACE_VAR": str(own), "DATABASE_URL": "", "BROKER_URL": ""}
    variables |= {"DJANGO_SETTINGS_MODULE": "tailrace.config.settings"}
    for _ in range(2):
        done = forks.run(
            ["-c", BOOT],
            cwd=ROOT,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            umask=0o022,
        )
        assert done.returncode == 0, done.stderr
    assert (own / "secret_key").exists()
    assert (own / "engines" / "postgres.log").exists()  # where the second process found them
    assert open_to_others(own) == []
    shutil.rmtree(own)


def test_setup_tightens_what_exists_and_leaves_the_engines_a_way(tmp_path: Path) -> None:
    engines = tmp_path / "engines"
    for path in (tmp_path / "mail" / "one.eml", engines / "postgres.log", engines / "x.conf"):
        path.parent.mkdir(exist_ok=True)
        path.parent.chmod(0o777)
        path.touch()
        path.chmod(0o666)
    tmp_path.chmod(0o755)
    outside = tmp_path.parent / "outside"
    outside.touch(0o644)
    (tmp_path / "link").symlink_to(outside)
    private_files.tighten(tmp_path, engines)
    assert open_to_others(tmp_path) == []
    assert outside.stat().st_mode & 0o044
    passes = 0o011 if os.geteuid() == 0 else 0
    assert engines.stat().st_mode & 0o077 == tmp_path.stat().st_mode & 0o077 == passes
    assert (tmp_path / "mail").stat().st_mode & 0o077 == 0


def _as_nobody(sockets: Path, user: str) -> str:
    """What a process of another user gets from the database; a child, since that user may not read
    Python's packages."""
    read, write = os.pipe()
    if not os.fork():
        os.setgroups([])
        os.setuid(pwd.getpwnam("nobody").pw_uid)
        try:
            psycopg.connect(**{**_own(sockets), "user": user})
            os.write(write, b"inside")
        except BaseException as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    os.wait()
    with os.fdopen(read) as output:
        return output.read()

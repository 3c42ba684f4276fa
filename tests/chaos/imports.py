"""Users who import files through the API while faults happen, and what must be true afterwards."""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.chaos.deployment import Deployment, wait_until

UNDISTURBED = "traveller0"
"""This user imports the files before the faults."""
USERS = (UNDISTURBED, "traveller1", "traveller2", "traveller3")
FILES = 4
POINTS = 100_000
"""Of each file; a quarter of them are in the file before, too."""
WITHOUT_TIME = 1000
"""Of so many points one has no time, and is rejected."""
PATIENCE = 300
"""Seconds that all imports may take after the last fault."""
LONGEST = 1200
"""Seconds that a traveller goes on while faults happen."""
TIMEOUT = 60
START = 1_735_689_600
BOUNDARY = "a9c5d1"


@dataclass(frozen=True)
class Upload:
    """A file, and what is in it."""

    name: str
    content: bytes
    numbers: range
    """Of its points."""

    @property
    def rejected(self) -> int:
        return sum(number % WITHOUT_TIME == 0 for number in self.numbers)


def uploads(points: int) -> list[Upload]:
    """GPX files and Records.json in turn, each with points of the file before."""
    files = []
    for index in range(FILES):
        numbers = range(index * points * 3 // 4, index * points * 3 // 4 + points)
        write, name = ((_gpx, "gpx"), (_records, "json"))[index % 2]
        files.append(Upload(f"track{index}.{name}", "".join(write(numbers)).encode(), numbers))
    return files


@dataclass
class Traveller:
    """A user who imports all files at once, for one device after the other until the faults are
    over, and repeats each request until it is answered."""

    deployment: Deployment
    user: str
    token: str
    uploads: Sequence[Upload]
    promotes: bool
    """Whether they end the grace themselves."""
    deadline: float
    accepted: dict[int, Upload] = field(default_factory=dict)
    """Import → file: the uploads that were acknowledged."""
    devices: int = 0
    ended: dict[int, dict] = field(default_factory=dict)
    """Import → its last answer."""

    def import_until(self, ended: threading.Event) -> None:
        """Import again and again, once at least; return when each import has ended, or at the
        deadline."""
        while self._left():
            self.devices += 1
            self._import_all(f"device {self.devices}")
            if ended.is_set():
                return

    def _import_all(self, device: str) -> None:
        for upload in self.uploads:
            body, headers = _form(upload, device)
            answer = self._insist("POST", "/api/imports", body, headers)
            if answer:
                self.accepted[answer["id"]] = upload
        while self._left() and (open_ := self.accepted.keys() - self.ended.keys()):
            for id in sorted(open_):
                self._follow(id)
            time.sleep(0.3)

    def _follow(self, id: int) -> None:
        row = self._insist("GET", f"/api/imports/{id}")
        if row and row["state"] in ("completed", "failed", "cancelled", "needs_decision"):
            self.ended[id] = row
        elif row and row["state"] == "grace" and self.promotes:
            self._insist("POST", f"/api/imports/{id}/promote", refused=409)

    def _insist(
        self, method: str, path: str, body: bytes = b"", headers: dict | None = None,
        refused: int | None = None,
    ) -> dict | None:  # fmt: skip
        """Return the answer, after as many requests as that takes; None at the deadline, or if it
        is `refused`."""
        while self._left():
            status, answer = _request(
                self.deployment.port, method, path, body,
                {"Authorization": f"Bearer {self.token}"} | (headers or {}),
            )  # fmt: skip
            if status in (200, 202):
                return answer
            if status == refused:
                return None
            time.sleep(0.5)
        return None

    def _left(self) -> bool:
        return time.monotonic() < self.deadline


class Travellers:
    """All of them: the first undisturbed, the others at the same time."""

    def __init__(self, deployment: Deployment, points: int) -> None:
        self.deployment, self.points = deployment, points
        self.uploads = uploads(points)
        tokens = json.loads(deployment.manage("shell", "-v0", "-c", _MAKE_TOKENS))
        deadline = time.monotonic() + LONGEST
        self.all = [
            Traveller(deployment, user, tokens[user], self.uploads, number % 2 == 0, deadline)
            for number, user in enumerate(USERS)
        ]
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()

    def import_undisturbed(self) -> None:
        ended = threading.Event()
        ended.set()
        self.all[0].import_until(ended)

    def start(self) -> None:
        for one in self.all[1:]:
            thread = threading.Thread(target=one.import_until, args=[self._ended])
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Return when all imports have ended and what follows from them is done."""
        self._ended.set()
        for one in self.all:
            one.deadline = time.monotonic() + PATIENCE
        for thread in self._threads:
            thread.join()
        left = max(10.0, self.all[0].deadline - time.monotonic())
        wait_until(lambda: self.deployment.number(_UNDONE) == 0, left, "imports are done")

    def problems(self) -> Iterator[str]:
        """Yield what is wrong, in words."""
        for one in self.all:
            for id, upload in one.accepted.items():
                yield from _wrong(f"{one.user}'s {upload.name}", one.ended.get(id), upload)
            if len(one.accepted) < one.devices * len(self.uploads):
                yield f"{one.user} could not upload all files for {one.devices} devices"
        with self.deployment.engines.connect() as database:
            for what, query in _CHECKS.items():
                rows = database.execute(query, {"names": list(USERS)}).fetchall()
                if rows:
                    yield f"{what}: {rows[:5]}"
            good = {n for file in self.uploads for n in file.numbers if n % WITHOUT_TIME}
            for device, missing, count in database.execute(
                _DIFFERENT, {"names": list(USERS), "undisturbed": UNDISTURBED}
            ).fetchall():
                if missing or count != len(good):
                    yield (
                        f"{device} has {count} points, {len(good)} expected, and lacks {missing}"
                        " of those of the undisturbed run"
                    )


def _wrong(what: str, row: dict | None, upload: Upload) -> Iterator[str]:
    if row is None:
        yield f"{what} has not ended"
        return
    if row["state"] != "completed":
        yield f"{what} is {row['state']}: {row['error']}"
    if row["inserted"] + row["duplicates"] + row["rejected"] != row["read"]:
        yield f"{what}: inserted + duplicates + rejected is not what was read: {row}"
    if (row["read"], row["rejected"]) != (len(upload.numbers), upload.rejected):
        yield f"{what}: {row['read']} points were read, {row['rejected']} rejected"


_MAKE_TOKENS = f"""
import json
from django.contrib.auth.models import User
from tailrace.web.accounts import tokens
scopes = ["timeline:import", "timeline:read"]
users = [User.objects.get_or_create(username=name)[0] for name in {USERS}]
print(json.dumps({{user.username: tokens.make(user, "chaos", scopes)[1] for user in users}}))
"""
_UNDONE = """
SELECT (SELECT count(*) FROM tailrace_jobs_job WHERE handler LIKE 'timeline.%%'
        AND state IN ('waiting', 'pending', 'running'))
     + (SELECT count(*) FROM pg_inherits
        WHERE inhparent = 'tailrace_timeline_staged_point'::regclass)
"""
_IMPORTS = """
FROM tailrace_timeline_import i JOIN auth_user u ON u.id = i.user_id
WHERE u.username = ANY(%(names)s)
"""
# An upload whose request was broken off is deleted after hours. Nobody was promised anything.
_CHECKS = {
    "imports are not completed": f"""
SELECT i.id, i.state, i.error {_IMPORTS} AND i.state NOT IN ('completed', 'receiving')""",
    "numbers do not add up": f"""
SELECT i.id, i.inserted, i.duplicates, i.staged {_IMPORTS} AND i.state = 'completed'
AND i.inserted + i.duplicates <> i.staged""",
    "an import counts other points than it brought": f"""
SELECT i.id, i.inserted, (SELECT count(*) FROM tailrace_timeline_point p
  WHERE p.device_id = i.device_id AND p.import_id = i.id) {_IMPORTS} AND i.inserted <>
  (SELECT count(*) FROM tailrace_timeline_point p WHERE p.device_id = i.device_id
    AND p.import_id = i.id)""",
    "an import was not announced once": f"""
SELECT i.id, i.state {_IMPORTS} AND i.state = 'completed' AND 1 <> (SELECT count(*)
  FROM tailrace_events_event e WHERE e.type = 'timeline.import_promoted'
  AND e.subject = 'import/' || i.id)""",
    "jobs failed": """
SELECT handler, state, error FROM tailrace_jobs_job WHERE handler LIKE 'timeline.%%'
  AND state = 'failed' AND %(names)s <> '{}'""",
}
_DIFFERENT = """
SELECT u.username || ', ' || d.name,
  (SELECT count(*) FROM (
    SELECT p.recorded_at, p.lon, p.lat FROM tailrace_timeline_point p
    JOIN tailrace_timeline_device ud ON ud.id = p.device_id JOIN auth_user uu ON uu.id = ud.user_id
    WHERE uu.username = %(undisturbed)s
    EXCEPT SELECT recorded_at, lon, lat FROM tailrace_timeline_point
      WHERE device_id = d.id) AS missing),
  (SELECT count(*) FROM tailrace_timeline_point WHERE device_id = d.id)
FROM tailrace_timeline_device d JOIN auth_user u ON u.id = d.user_id
WHERE u.username = ANY(%(names)s)
"""


def _places(numbers: range) -> Iterator[tuple[int, str, str, int, int]]:
    for number in numbers:
        lat, lon = 520_000_000 + number * 37, 130_000_000 + number * 53
        yield number, f"{lat / 1e7:.7f}", f"{lon / 1e7:.7f}", lat, lon


def _at(number: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START + number))


def _gpx(numbers: range) -> Iterator[str]:
    yield '<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>\n'
    for number, lat, lon, _lat_e7, _lon_e7 in _places(numbers):
        at = f"<time>{_at(number)}</time>" if number % WITHOUT_TIME else ""
        yield f'<trkpt lat="{lat}" lon="{lon}">{at}</trkpt>\n'
    yield "</trkseg></trk></gpx>\n"


def _records(numbers: range) -> Iterator[str]:
    yield '{"locations": ['
    for number, _lat, _lon, lat, lon in _places(numbers):
        at = f', "timestamp": "{_at(number)}"' if number % WITHOUT_TIME else ""
        comma = "," if number > numbers[0] else ""
        yield f'{comma}\n{{"latitudeE7": {lat}, "longitudeE7": {lon}{at}}}'
    yield "\n]}\n"


def _form(upload: Upload, device: str) -> tuple[bytes, dict[str, str]]:
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="device"\r\n\r\n{device}\r\n'
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{upload.name}"'
        "\r\nContent-Type: application/octet-stream\r\n\r\n"
    )
    body = head.encode() + upload.content + f"\r\n--{BOUNDARY}--\r\n".encode()
    return body, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def _request(
    port: int, method: str, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int | None, dict]:
    """The status and the JSON; None if there was no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    except (OSError, http.client.HTTPException, ValueError):
        return None, {}
    finally:
        connection.close()

"""Format the sample backend's answers like a real source server, including its defects."""

import json
from xml.sax.saxutils import escape

from tailrace.samples.builds.log import Answer, Notification


def as_json(answer: Answer) -> bytes:
    """Format an answer for `view=json`. Non-ASCII text is encoded twice, as by a real server."""
    body: dict[str, object] = {"next": answer.next}
    if answer.sync_lost:
        body["sync"] = "lost"
    if answer.limit_reached:
        body["limit_reached"] = "1"
    if answer.has_start:
        body["notification"] = [
            {"type": entry.type, "time": str(entry.time), "data": _encoded_twice(entry)}
            for entry in answer.notifications
        ]
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def _encoded_twice(entry: Notification) -> dict[str, str]:
    return {
        key: value if value.isascii() else value.encode("utf-8", "replace").decode("latin-1")
        for key, value in entry.values.items()
    }


def as_xml(answer: Answer) -> bytes:
    """Format an answer as XML. Control characters are not escaped, so the XML may be ill-formed, as
    from a real server."""
    flags = ' limit_reached="1"' if answer.limit_reached else ""
    flags += ' sync="lost"' if answer.sync_lost else ""
    if not answer.has_start:
        return f'<notifications next="{answer.next}"{flags} />\n'.encode()
    lines = [f'<notifications next="{answer.next}"{flags}>']
    for entry in answer.notifications:
        lines.append(f'  <notification type="{_value(entry.type)}" time="{entry.time}">')
        lines += [
            f'    <data key="{_value(key)}">{_value(value)}</data>'
            for key, value in sorted(entry.values.items())
        ]
        lines.append("  </notification>")
    lines.append("</notifications>\n")
    return "\n".join(lines).encode("utf-8", "replace")


def _value(text: str) -> str:
    return escape(text, {'"': "&quot;"})


def log_size(size: int) -> bytes:
    """Format the size of a build log, for `view=entry`."""
    entry = f'<entry name="_log" size="{size}" mtime="1700000360" />'
    return f"<directory>\n  {entry}\n</directory>\n".encode()


def build_log(package: str) -> bytes:
    """Return the log of a failed build of the package."""
    steps = (f"[{second:5}s] [{second:3}/200] CC part{second}.o" for second in range(1, 200))
    end = ("error: 'answer' undeclared (first use in this function)", f"{package} failed")
    return "\n".join([*steps, *(f"[  200s] {line}" for line in end), ""]).encode()


def status(code: int, summary: str) -> bytes:
    """Format the body of an error, or of a success without content."""
    if code == 200:
        return b'<status code="ok" />\n'
    return (
        f'<status code="{code}">\n  <summary>{escape(summary)}</summary>\n'
        f"  <details>{code} {escape(summary)}</details>\n</status>\n"
    ).encode()

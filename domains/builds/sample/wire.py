"""How the source server writes its answers, with its quirks, as captured from a real one."""

import json
from xml.sax.saxutils import escape

from domains.builds.sample.log import Answer, Notification


def as_json(answer: Answer) -> bytes:
    """Write an answer as `view=json` has it. Text beyond ASCII comes encoded twice."""
    body: dict[str, object] = {"next": answer.next}
    if answer.sync_lost:
        body["sync"] = "lost"
    if answer.limit_reached:
        body["limit_reached"] = "1"
    if answer.asked_from_start:
        body["notification"] = [
            {"type": made.type, "time": str(made.time), "data": _twice(made)}
            for made in answer.notifications
        ]
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def _twice(made: Notification) -> dict[str, str]:
    return {
        key: value if value.isascii() else value.encode("utf-8", "replace").decode("latin-1")
        for key, value in made.values.items()
    }


def as_xml(answer: Answer) -> bytes:
    """Write an answer as XML. Control characters stand as they are, so it may be ill-formed."""
    marks = ' limit_reached="1"' if answer.limit_reached else ""
    marks += ' sync="lost"' if answer.sync_lost else ""
    if not answer.asked_from_start:
        return f'<notifications next="{answer.next}"{marks} />\n'.encode()
    lines = [f'<notifications next="{answer.next}"{marks}>']
    for made in answer.notifications:
        lines.append(f'  <notification type="{_value(made.type)}" time="{made.time}">')
        lines += [
            f'    <data key="{_value(key)}">{_value(value)}</data>'
            for key, value in sorted(made.values.items())
        ]
        lines.append("  </notification>")
    lines.append("</notifications>\n")
    return "\n".join(lines).encode("utf-8", "replace")


def _value(text: str) -> str:
    return escape(text, {'"': "&quot;"})


def status(code: int, summary: str) -> bytes:
    """Write the body of an error, or of a success that has nothing to say."""
    if code == 200:
        return b'<status code="ok" />\n'
    return (
        f'<status code="{code}">\n  <summary>{escape(summary)}</summary>\n'
        f"  <details>{code} {escape(summary)}</details>\n</status>\n"
    ).encode()

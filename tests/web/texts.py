"""The texts that people read on their pages, in their mails and in messages of errors.

They are read from the sources: templates, scripts, Python modules, and the descriptions of event
types. In a text, `{name}` is a value, and `[one|other]` are texts of which at most one is shown.
"""

import ast
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from tailrace.events.catalog.topics import type_title
from tailrace.events.types import all_types

ROOT = Path(__file__).resolve().parents[2]
APPS = ("web", "subscriptions", "domains")
NOT_FOR_PEOPLE = {
    "admin", "api", "base_map", "commands", "leaflet", "migrations", "models", "panels", "platform",
    "settings.py", "snippets",
}  # fmt: skip
"""Folders and files whose texts are for operators and programs."""
_REMOVED = re.compile(r"{% *comment.*?endcomment *%}|{#.*?#}|<style.*?</style>", re.DOTALL)
_INLINE = re.compile(r"</?(?:a|strong|code|span|time|em|mark|b)\b[^>]*>")
_ATTRIBUTE = re.compile(r' (?:aria-label|title|alt|placeholder)="([^"]+)"')
_SCRIPT = re.compile(r'"([^"\n]*)"|`([^`\n]*)`')
_WORDS = re.compile(r"[A-Za-z']{2,}[,:]? +[a-z{\[“]|^[A-Z][a-z]+\W*$")
_SYNTAX = re.compile(r"^[a-z_.:/-]*$|SELECT |UPDATE |INSERT |DELETE FROM|[#.]\w[\w-]* [.#\[]|=\"")


def all_texts() -> list[tuple[str, str]]:
    """Return the file and the text of each, in the order of the files."""
    readers = {"*.html": in_template, "*.txt": in_template, "*.js": in_script, "*.py": in_module}
    texts = [
        (str(path.relative_to(ROOT)), text)
        for pattern, read in readers.items()
        for path in _files(pattern)
        for text in read(path.read_text(encoding="utf-8"))
    ]
    texts += [(f"event type {cls.name}", type_title(cls)) for cls in all_types()]
    return list(dict.fromkeys(texts))


def in_template(source: str) -> Iterator[str]:
    source = _REMOVED.sub("", source)
    source = re.sub(r"{{[^}]*\|pluralize[^}]*}}", "(s)", source)
    source = re.sub(r"{{ *([\w.]+).*?}}", lambda found: f"{{{found[1].split('.')[-1]}}}", source)
    for tag, mark in (("if", "["), ("elif", "|"), ("else", "|"), ("endif", "]"), ("empty", "|")):
        source = re.sub(rf"{{% *{tag}\b.*?%}}", mark, source)
    source = re.sub(r"{%.*?%}", "", source, flags=re.DOTALL)
    visible = re.sub(r"<[^>]*>", "\n", _INLINE.sub("", source))
    for text in (*_ATTRIBUTE.findall(source), *visible.splitlines()):
        yield from _if_words(text)


def in_script(source: str) -> Iterator[str]:
    for line in source.splitlines():
        if not line.lstrip().startswith("//"):
            for found in _SCRIPT.finditer(line):
                yield from _if_words(found[1] or found[2] or "")


def in_module(source: str) -> Iterator[str]:
    """Yield the strings of a module but for docstrings."""
    tree = ast.parse(source)
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node)}
            yield from _if_words("".join(_part(part) for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _if_words(node.value)


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    return f"{{{ast.unparse(part).strip('{}').partition(':')[0][-30:]}}}"


def _if_words(text: str) -> Iterator[str]:
    text = " ".join(unescape(text).split())
    if _WORDS.search(text) and not _SYNTAX.search(text):
        yield text


def _files(pattern: str) -> Iterator[Path]:
    for app in APPS:
        for path in sorted((ROOT / app).rglob(pattern)):
            if not NOT_FOR_PEOPLE.intersection(path.relative_to(ROOT).parts):
                yield path

"""Render the descriptions of operations and fields, which contain names in backticks."""

import re

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_CODE = re.compile("`([^`]+)`")


def prose(text: str) -> SafeString:
    """Return the text as one line of HTML, with text in backticks as `<code>`."""
    line = " ".join(text.split())
    return mark_safe(_CODE.sub(r"<code>\1</code>", escape(line)))  # noqa: S308


def paragraphs(text: str) -> list[SafeString]:
    """Return the paragraphs of a text, which are separated by empty lines, as HTML."""
    return [prose(part) for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]

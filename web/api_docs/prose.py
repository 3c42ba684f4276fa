"""The descriptions of operations and fields, whose authors write names in backticks."""

import re

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_CODE = re.compile("`([^`]+)`")


def prose(text: str) -> SafeString:
    """Return a line of HTML; what is between backticks is code."""
    line = " ".join(text.split())
    return mark_safe(_CODE.sub(r"<code>\1</code>", escape(line)))  # noqa: S308


def paragraphs(text: str) -> list[SafeString]:
    """Return the paragraphs of a text, which empty lines part."""
    return [prose(part) for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]

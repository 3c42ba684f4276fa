"""The texts of people's pages and mails. `pytest -s tests/web/test_texts.py` prints all of them."""

import re
import sys
from itertools import groupby
from operator import itemgetter

from tests.web.texts import all_texts, in_module, in_script, in_template

UNWANTED = (
    r"\b(?:Reports|Report) generate\b", r"\bHometitle\b", r"\bMend\b", r"\bof late\b",
    r"\bneeds you\b", r"\bstands? in\b", r"\bis looked at\b", r"\bWhat it is\b", r", too, ",
    r"\btells? .* apart\b", r"\bcomes? as\b", r"\bat present\b", r"\btakes leave\b",
    r"\bin yours,", r"× other", r"\bnone that\b", r"\bspeaks? of\b",
)  # fmt: skip
"""Phrases that were in texts, and that no support team would write."""
_unwanted = re.compile("|".join(UNWANTED))


def unwanted(texts: list[tuple[str, str]]) -> list[str]:
    return [f"{place}: {text}" for place, text in texts if _unwanted.search(text)]


def test_texts_are_ordinary_sentences() -> None:
    texts = all_texts()
    places = groupby(texts, itemgetter(0))
    sys.stdout.write(
        "".join(
            f"\n{place}\n" + "".join(f"  {text}\n" for _, text in group) for place, group in places
        )
    )
    assert len(texts) > 1000, "the texts were not found"
    assert unwanted(texts) == []


def test_an_unwanted_phrase_is_found_wherever_it_is() -> None:
    template = '<p title="What it is">{% if a %}Your data stands in <b>a leak</b>{% endif %}.</p>'
    script = 'button.textContent = "Mend what it needs";  // of late\n// a comment of late'
    module = '"""A docstring, of late."""\nlabel = f"A removal needs you, {name}"\n'
    phrases = [*in_template(template), *in_script(script), *in_module(module)]
    assert len(unwanted([("sample", text) for text in phrases])) == 4


def test_texts_keep_values_and_alternatives() -> None:
    template = (
        "{{ row.count|thousands }} full day{{ n|pluralize }} "
        "{% if a %}left{% else %}over{% endif %}"
    )
    assert list(in_template(template)) == ["{count} full day(s) [left|over]"]
    assert list(in_module("show(f'You have {len(rows)} rows.')")) == ["You have {len(rows)} rows."]

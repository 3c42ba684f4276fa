"""Code snippets with which a receiver verifies a message, in common languages."""

from functools import cache

from django.template.loader import render_to_string

LANGUAGES = {
    "python": "Python",
    "javascript": "JavaScript",
    "java": "Java",
    "go": "Go",
    "ruby": "Ruby",
    "php": "PHP",
}


@cache
def snippets() -> dict[str, str]:
    """Return the code by the language's title: a function that needs no library."""
    return {
        title: render_to_string(f"tailrace/subscriptions/snippets/{name}.txt").strip()
        for name, title in LANGUAGES.items()
    }

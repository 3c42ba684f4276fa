"""Examples of operations: a request, and the recorded response, by operation id, in `examples.json`
in an app's `api` package. tests/web/test_examples.py compares and records the responses."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

Examples = dict[str, dict[str, Any]]
FILE = "examples.json"


def examples_of(module: ModuleType) -> Examples:
    """Return the examples of an app's `api` module, by operation id."""
    if not hasattr(module, "__path__"):
        return {}
    file = file_of(module)
    examples: Examples = json.loads(file.read_text()) if file.exists() else {}
    return examples


def file_of(module: ModuleType) -> Path:
    return Path(str(module.__file__)).parent / FILE


def add_example(details: dict[str, Any], example: dict[str, Any]) -> None:
    """Add an example to the OpenAPI description of its operation, if its response was recorded."""
    if "status" not in example:
        return
    parameters = {**example.get("path", {}), **example.get("query", {})}
    for parameter in details.get("parameters", ()):
        if parameter.get("name") in parameters and parameter.get("in") in ("path", "query"):
            parameter["example"] = parameters[parameter["name"]]
    contents = details.get("requestBody", {}).get("content", {})
    if "body" in example:
        kind = example.get("content_type", "application/json")
        contents[kind] = {**contents[kind], "example": example["body"]}
    response = details["responses"][example["status"]]
    for content in response.get("content", {}).values():
        if "answer" in example:
            content["example"] = example["answer"]

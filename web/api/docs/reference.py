"""The operations and webhooks of the OpenAPI document in groups, as the pages show them."""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.utils.safestring import SafeString
from django.utils.text import slugify

from tailrace.web.api.docs.fields import Field, Schemas, prose

FORM = "multipart/form-data"


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request or a response in one content type."""

    kind: str
    """The content type."""
    what: str
    """The type of the whole body, such as `list of object`."""
    fields: list[Field]
    example: str
    """Indented JSON; empty: there is no example."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    about: SafeString
    bodies: list[Body]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the API, or a webhook message that Tailrace sends."""

    id: str
    method: str
    path: str
    """The path, or the name of the webhook message."""
    summary: str
    about: list[SafeString]
    parameters: list[Field]
    bodies: list[Body]
    answers: list[Answer]
    problems: list[str]
    """The statuses of error responses."""
    command: str
    """The example as a curl command; empty: there is no example."""
    is_webhook: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    slug: str
    title: str
    operations: list[Operation]


class Reference:
    def __init__(self, document: Mapping[str, Any]) -> None:
        # The same document as JSON: keys such as statuses become strings.
        self._document: dict[str, Any] = json.loads(json.dumps(document))
        self._schemas = Schemas(self._document["components"]["schemas"])

    @cached_property
    def groups(self) -> list[Group]:
        by_title: dict[str, list[Operation]] = defaultdict(list)
        for path, methods in self._document["paths"].items():
            for method, details in methods.items():
                by_title[_title(details)].append(self._operation(method, path, details))
        for name, methods in self._document["webhooks"].items():
            by_title[_title(methods["post"])].append(
                self._operation("post", name, methods["post"], is_webhook=True)
            )
        return [Group(slugify(title), title, rows) for title, rows in by_title.items()]

    def group(self, slug: str) -> Group | None:
        return next((group for group in self.groups if group.slug == slug), None)

    def _operation(
        self, method: str, path: str, details: Mapping[str, Any], *, is_webhook: bool = False
    ) -> Operation:
        bodies = list(self._bodies(details.get("requestBody", {})))
        responses = details["responses"]
        return Operation(
            id=details["operationId"].replace(".", "-"),
            method=method.upper(),
            path=path,
            summary=details["summary"],
            about=paragraphs(details.get("description", "")),
            parameters=[self._parameter(each) for each in details.get("parameters", ())],
            bodies=bodies,
            answers=[
                Answer(status, prose(each["description"]), list(self._bodies(each)))
                for status, each in responses.items()
                if status.startswith("2")
            ],
            problems=[status for status in responses if not status.startswith("2")],
            command="" if is_webhook else self._command(method, path, details),
            is_webhook=is_webhook,
        )

    def _parameter(self, raw: Mapping[str, Any]) -> Field:
        name = raw.get("$ref", "").rpartition("/")[2]
        details = self._document["components"]["parameters"][name] if name else raw
        schema = {"description": details.get("description", ""), **details["schema"]}
        return self._schemas.field(
            details["name"], schema, details.get("required", False), details["in"]
        )

    def _bodies(self, holder: Mapping[str, Any]) -> Iterator[Body]:
        for kind, content in holder.get("content", {}).items():
            schema = content.get("schema", {})
            fields = list(self._schemas.fields(schema))
            example = content.get("example")
            text = "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
            yield Body(kind, self._schemas.kind(schema), fields, text)

    def _command(self, method: str, path: str, details: Mapping[str, Any]) -> str:
        """Return a curl command; "" if the operation has no example."""
        if not _has_example(details):
            return ""
        parameters: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}}
        for parameter in details.get("parameters", ()):
            if "example" in parameter:
                parameters[parameter["in"]][parameter["name"]] = parameter["example"]
        address = path.format_map(defaultdict(lambda: "1", parameters["path"]))
        query = f"?{urlencode(parameters['query'], doseq=True)}" if parameters["query"] else ""
        server = self._document["servers"][0]["url"]
        parts = [f"curl --header \"Authorization: Bearer $TOKEN\" '{server}{address}{query}'"]
        if method != "get":
            parts[0] = parts[0].replace("curl ", f"curl --request {method.upper()} ", 1)
        content = details.get("requestBody", {}).get("content", {})
        examples = [(kind, each["example"]) for kind, each in content.items() if "example" in each]
        kind, body = examples[0] if examples else ("", {})
        if kind == FORM:
            parts += [f"--form {shlex.quote(f'{name}={value}')}" for name, value in body.items()]
        elif kind:
            parts.append(f"--header 'Content-Type: {kind}'")
            text = json.dumps(body, indent=2, ensure_ascii=False)
            parts.append(f"--data {shlex.quote(text)}")
        return " \\\n    ".join(parts)


def paragraphs(text: str) -> list[SafeString]:
    """Return the paragraphs of a text, which are separated by empty lines, as HTML."""
    return [prose(part) for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]


def _has_example(details: Mapping[str, Any]) -> bool:
    holders = [details.get("requestBody", {}), *details["responses"].values()]
    contents = [each for holder in holders for each in holder.get("content", {}).values()]
    return any("example" in each for each in [*details.get("parameters", ()), *contents])


def _title(details: Mapping[str, Any]) -> str:
    return str(details["tags"][0]).partition("/")[0].replace("-", " ")

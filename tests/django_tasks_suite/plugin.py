"""What pytest loads before the suites: their tasks are declared, and the tests that cannot apply
are skipped with their reasons."""

import pytest

from tailrace.jobs.frameworks.django_tasks import registration
from tests.django_tasks_suite.reasons import NOT_APPLICABLE

registration.is_complete = False
import tasks.tasks  # type: ignore[import-not-found] # noqa: E402, F401  (of the downloaded suite)

registration.is_complete = True
for path in registration.paths():
    if path.startswith("tasks.tasks."):
        setattr(registration.handler_of(path), "max_attempts", 1)  # noqa: B010


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = "::".join(item.nodeid.split("::")[1:])
        group = name.partition("::")[0]
        if reason := NOT_APPLICABLE.get(name) or NOT_APPLICABLE.get(group):
            item.add_marker(pytest.mark.skip(reason=reason))

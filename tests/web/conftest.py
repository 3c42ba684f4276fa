from tests.subscriptions.conftest import _no_role_holders  # noqa: F401

from tests.subscriptions import sample_domain

__all__ = ["sample_domain"]

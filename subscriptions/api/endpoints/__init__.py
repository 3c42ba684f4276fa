"""Webhook endpoints of a user, their messages and deliveries."""

from tailrace.subscriptions.api.endpoints import endpoints, messages, recovery

router = endpoints.router
router.add_router("", messages.router)
router.add_router("", recovery.router)

"""Webhook endpoints of a user, their messages and deliveries."""

from subscriptions.api.endpoints import endpoints, messages, recovery

router = endpoints.router
router.add_router("", messages.router)
router.add_router("", recovery.router)

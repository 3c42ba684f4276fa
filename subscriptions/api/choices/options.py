"""The options of a user by event type, role and channel."""

from django.contrib.auth.models import User

from tailrace.environment.suggest import did_you_mean
from tailrace.events.types import all_types
from tailrace.subscriptions.notifications.preferences.options import Topic, UserOptions
from tailrace.subscriptions.types.channel import all_channels
from tailrace.subscriptions.types.subscribable import receiver_roles
from tailrace.web.api.problems import wrong_parameter
from tailrace.web.api.schemas import Out


class Choice(Out):
    """A subscription that applies. It may be for a family or for all event types."""

    id: int
    event_type: str
    state: str
    pace: str
    subject_pattern: str


class Cell(Out):
    """A channel that is offered in a role, and the subscriptions that apply."""

    channel: str
    default: Choice | None
    own: Choice | None
    """Your own subscription overrides the default. If you hold the role through a group, the
    group's subscription overrides the default, too, but not your own subscription."""


class RoleRow(Out):
    role: str
    channels: list[Cell]


class TypeRow(Out):
    event_type: str
    description: str
    families: list[str]
    """The families of the event type, nearest first. You can subscribe to a family, too."""
    roles: list[RoleRow]


class Options(Out):
    types: list[TypeRow]


def options_of(user: User, name: str | None = None) -> Options:
    """Return the user's options for all event types with receivers, or for the type `name`."""
    types = {cls.name: cls for cls in all_types() if receiver_roles(cls)}
    if name is not None:
        if name not in types:
            hint = did_you_mean(name, types)
            raise wrong_parameter(
                "event_type", f"there is no event type with receivers of this name{hint}"
            )
        types = {name: types[name]}
    topics = [Topic(name, [cls]) for name, cls in types.items()]
    options = UserOptions(user, topics)
    return Options(types=[_type_row(topic, options) for topic in topics])


def _type_row(topic: Topic, options: UserOptions) -> TypeRow:
    (event_type,) = topic.types
    return TypeRow(
        event_type=topic.name,
        description=" ".join(event_type.description().split()),
        families=list(topic.names[1:]),
        roles=[
            RoleRow(
                role=role,
                channels=[
                    Cell.model_validate(options.option(topic, role, key))
                    for key in all_channels()
                    if key in has
                ],
            )
            for role, has in topic.offers.items()
        ],
    )

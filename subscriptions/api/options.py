"""All options of a user by event type, role and channel: the default and the user's own row."""

from django.contrib.auth.models import User

from tailrace.events.suggest import did_you_mean
from tailrace.events.types import all_types
from tailrace.subscriptions.preferences.options import Topic, UserOptions
from tailrace.subscriptions.types.channel import all_channels
from tailrace.subscriptions.types.subscribable import receiver_roles
from tailrace.web.api.problems import wrong_parameter
from tailrace.web.api.schemas import Out


class Choice(Out):
    """The row that applies; it may be for a family or for all event types."""

    id: int
    event_type: str
    state: str
    pace: str
    subject_pattern: str


class Cell(Out):
    """A channel that is offered in a role."""

    channel: str
    default: Choice | None
    own: Choice | None
    """It overrides the default. For a role that you hold through a group, the group's row overrides
    the default too, but not your own row."""


class RoleRow(Out):
    role: str
    channels: list[Cell]


class TypeRow(Out):
    event_type: str
    description: str
    families: list[str]
    """Families that it belongs to, the nearest first; you can subscribe to these too."""
    roles: list[RoleRow]


class Options(Out):
    types: list[TypeRow]


def options_of(user: User, name: str | None = None) -> Options:
    """Return the user's options for all event types with receivers, or for the type `name`."""
    types = {cls.name: cls for cls in all_types() if receiver_roles(cls)}
    if name is not None:
        if name not in types:
            hint = did_you_mean(name, types)
            raise wrong_parameter("event_type", f"no such event type has receivers{hint}")
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

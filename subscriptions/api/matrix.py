"""matrix: all that one can hear of, by role and channel: the default, and one's choice."""

from django.contrib.auth.models import User

from events.suggest import did_you_mean
from events.types import all_types
from subscriptions import channels
from subscriptions.api.problems import wrong_parameter
from subscriptions.api.shapes import Out
from subscriptions.audible import receiver_roles
from subscriptions.matrix import Spot, Topic, Words
from subscriptions.models import EventSubscription


class Choice(Out):
    """The row that counts: it may be one for a family, or for everything."""

    id: int
    event_type: str
    state: str
    pace: str
    subject_pattern: str


class Cell(Out):
    """A channel by which one may hear, in a role."""

    channel: str
    default: Choice | None
    own: Choice | None
    """It beats the default. Where one holds the role through a group, the group's row comes
    between."""


class RoleRow(Out):
    role: str
    channels: list[Cell]


class TypeRow(Out):
    event_type: str
    description: str
    families: list[str]
    """The wider names under which it can be subscribed to, the nearest first."""
    roles: list[RoleRow]


class Matrix(Out):
    types: list[TypeRow]


def matrix(user: User, name: str | None = None) -> Matrix:
    """Return the matrix of the user, of all types that are heard of or of the one so called."""
    heard = [one for one in all_types() if receiver_roles(one)]
    if name is not None:
        names = [one.name for one in heard]
        if name not in names:
            hint = did_you_mean(name, names)
            raise wrong_parameter("event_type", f"no type that is heard of is called so{hint}")
        heard = [one for one in heard if one.name == name]
    topics = [Topic(one.name, [one]) for one in heard]
    words = Words(user, topics)
    return Matrix(types=[_type(one, words) for one in topics])


def _type(topic: Topic, words: Words) -> TypeRow:
    (event_type,) = topic.types
    return TypeRow(
        event_type=topic.name,
        description=" ".join(event_type.description().split()),
        families=list(topic.names[1:]),
        roles=[
            RoleRow(
                role=role,
                channels=[
                    _cell(words.spot(topic, role, key))
                    for key in channels.everything()
                    if key in has
                ],
            )
            for role, has in topic.offers.items()
        ],
    )


def _cell(spot: Spot) -> Cell:
    return Cell(channel=spot.channel, default=_choice(spot.default), own=_choice(spot.own))


def _choice(row: EventSubscription | None) -> Choice | None:
    return None if row is None else Choice.model_validate(row)

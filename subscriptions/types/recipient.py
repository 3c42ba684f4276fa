"""The recipients of an event, and their keys in jobs."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RecipientKey:
    """A user or a group, as in the routing key of a job: `user:5` or `group:3`.

    A channel with several addresses per user appends one of them: `user:5:endpoint:7`. If a message
    is sent again, the id of its first job and a number follow: `user:5:endpoint:7:again:42:1`.
    """

    user_id: int | None = None
    group_id: int | None = None

    @classmethod
    def parse(cls, routing_key: str) -> "RecipientKey | None":
        """Return the user or group of the routing key, or None if it has another form."""
        match routing_key.split(":"):
            case ["user", id] | ["user", id, _, _] | ["user", id, _, _, "again", _, _] if (
                id.isdecimal()
            ):
                return cls(user_id=int(id))
            case ["group", id] if id.isdecimal():
                return cls(group_id=int(id))
        return None

    def __str__(self) -> str:
        return f"group:{self.group_id}" if self.user_id is None else f"user:{self.user_id}"

    def with_address(self, kind: str, id: int) -> str:
        """Return the routing key for one address of the recipient."""
        return f"{self}:{kind}:{id}"


def address_id(routing_key: str) -> int:
    """Return the id after `user:ID:endpoint:` or `user:ID:device:`, or 0 if there is none."""
    match routing_key.split(":"):
        case [_, _, _, id, *_] if id.isdecimal():
            return int(id)
    return 0


def first_job(routing_key: str) -> int:
    """Return the id of the job whose message is sent again, or 0 if it is a first one."""
    match routing_key.split(":"):
        case [_, _, _, _, "again", job, _] if job.isdecimal():
            return int(job)
    return 0


def resend_key(routing_key: str, job_id: int, number: int) -> str:
    """Return the routing key of a job that sends the message of the job `job_id` again."""
    return f"{routing_key}:again:{job_id}:{number}"


@dataclass(frozen=True, slots=True)
class Recipient:
    """One recipient of an event by one channel: either `user_id` or `group_id` is set."""

    event_id: int
    channel: str
    user_id: int | None
    group_id: int | None
    role: str
    """The role because of which the recipient is notified."""
    pace: str = "instant"
    subscription_id: int | None = field(default=None, compare=False)
    """The deciding subscription."""
    is_chosen: bool = field(default=False, compare=False)
    """Whether the recipient made the deciding subscription for the event's type or a family."""
    urgent: bool = field(default=False, compare=False)
    """Whether the event is sent before others, and no limit applies to it."""

    @property
    def key(self) -> RecipientKey:
        return RecipientKey(self.user_id, self.group_id)

from pydantic import BaseModel
from tailrace.events.types import EventType


class VacancyAdded(EventType):
    """Somebody added a vacancy."""

    name = "jobs.vacancy_added"

    class Payload(BaseModel):
        vacancy: int
        title: str

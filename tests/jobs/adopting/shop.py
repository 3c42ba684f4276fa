"""A Celery application as a team has it, with tasks of each kind."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Literal
from uuid import UUID

import celery
from celery import Celery, chain, chord, current_app, group
from django.conf import settings
from pydantic import BaseModel

current_app.finalize()  # the tasks of other tests belong to the app to which they are bound first
app = Celery("shop", broker=settings.CELERY_BROKER_URL, set_as_current=False)
app.conf.update(
    timezone="Europe/Berlin",
    task_acks_late=True,
    # Other tests have "media" on this vhost, as a quorum queue
    task_routes={"stall.encode": {"queue": "stall_media"}},
    task_create_missing_queues=True,
    broker_transport_options={"visibility_timeout": 7200},
)

task = partial(app.task, shared=False)  # else each application of this process has them, too


class Logged(celery.Task):
    """The base class of a team that derives from Celery's."""


class OfApp(app.Task):
    """The base class of a team that derives from the application's."""


@dataclass
class Order:
    number: int


class Parcel(BaseModel):
    weight: float


@task(name="stall.send_receipt")
def send_receipt(order: int, at: datetime | None = None, kind: Literal["a", "b"] = "a") -> None:
    pass


@task(name="stall.encode", base=OfApp, rate_limit="10/m")
def encode(id: Annotated[UUID, "of a video"], sizes: list[int] = [1, 2]) -> None:  # noqa: B006
    pass


@task(name="stall.weigh", pydantic=True)
def weigh(parcel: Parcel) -> None:
    pass


@task(name="stall.tell")
def tell(order: Order) -> None:
    pass


@task(name="stall.pickled", serializer="pickle")
def pickled(order: Order, tags: set[str], note: str = "", seen=frozenset()) -> None:
    pass


@task(name="stall.packed", serializer="msgpack")
def packed(number: int) -> None:
    pass


@task(name="stall.of_base", base=Logged)
def of_base() -> None:
    pass


class OfClass(celery.Task):
    name = "stall.of_class"

    def run(self) -> None:
        pass


app.register_task(OfClass())


@task(name="stall.waits", bind=True, autoretry_for=(OSError,))
def waits(self) -> int:
    price = send_receipt.delay(1)
    return price.get(timeout=3)


@task(name="stall.waits_directly")
def waits_directly() -> int:
    return send_receipt.apply_async((1,), countdown=3).get()


@task(name="stall.waits_for_group")
def waits_for_group() -> list[int]:
    return group(send_receipt.s(n) for n in range(3))().join()


@task(name="stall.waits_for_many")
def waits_for_many() -> list[int]:
    results = [send_receipt.delay(n) for n in range(3)]
    return [result.get() for result in results]


@task(name="stall.asks_for_result")
def asks_for_result(id: str) -> int:
    return app.AsyncResult(id).get()


@task(name="stall.starts_others")
def starts_others(facts: dict[str, int]) -> int:
    chain(send_receipt.si(1), send_receipt.si(2)).delay()
    chord([send_receipt.si(1)], send_receipt.si(2)).apply_async()
    return facts.get("price", 0)


@task(name="stall.at@once")
def at_once() -> None:
    pass

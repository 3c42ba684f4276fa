"""blocks: whom one hears nothing of."""

from typing import Annotated

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from subscriptions.api.gate import Needs, caller
from subscriptions.api.paging import Page, Paged, newest_first
from subscriptions.api.problems import Problem, not_found, wrong_field
from subscriptions.api.shapes import In, Out
from subscriptions.models import Block

router = Router()
READ, WRITE = Needs("subscriptions:read"), Needs("subscriptions:write")


class BlockIn(In):
    username: Annotated[str, Field(max_length=150, description="whose doings to hear nothing of")]


class BlockOut(Out):
    id: int
    username: str

    @classmethod
    def of(cls, block: Block) -> "BlockOut":
        return cls(id=block.pk, username=block.blocked.get_username())


@router.get("", auth=READ, response=Page[BlockOut], summary="Whom one blocks")
def list_blocks(request: HttpRequest, asked: Query[Paged]) -> Page[BlockOut]:
    rows = Block.objects.filter(user=caller(request).user).select_related("blocked")
    return newest_first(rows, asked, BlockOut.of)


@router.post("", auth=WRITE, response={201: BlockOut}, summary="Block somebody")
def make_block(request: HttpRequest, body: BlockIn) -> BlockOut:
    user = caller(request).user
    blocked = User.objects.filter(username=body.username).first()
    if blocked is None:
        raise wrong_field("username", "nobody has this login")
    if blocked == user:
        raise wrong_field("username", "nobody can block themselves")
    block, made = Block.objects.get_or_create(user=user, blocked=blocked)
    if not made:
        raise Problem(409, f"you block {body.username} already", kind="exists")
    return BlockOut.of(block)


@router.delete("/{int:id}", auth=WRITE, response={204: None}, summary="Unblock somebody")
def delete_block(request: HttpRequest, id: int) -> None:
    if not Block.objects.filter(user=caller(request).user, pk=id).delete()[0]:
        raise not_found("block")

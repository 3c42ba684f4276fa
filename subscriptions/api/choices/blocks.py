"""Blocked users: a user is not notified about actions of the users they have blocked."""

from typing import Annotated

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from tailrace.subscriptions.models import Block
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import Problem, not_found, wrong_field
from tailrace.web.api.schemas import In, Out

router = Router()
READ, WRITE = Needs("subscriptions:read"), Needs("subscriptions:write")


class BlockIn(In):
    username: Annotated[str, Field(max_length=150, description="login of the user to block")]


class BlockOut(Out):
    id: int
    username: str

    @classmethod
    def of_block(cls, block: Block) -> "BlockOut":
        return cls(id=block.pk, username=block.blocked.get_username())


@router.get("", auth=READ, response=Page[BlockOut], summary="List blocked users")
def list_blocks(request: HttpRequest, params: Query[PageParams]) -> Page[BlockOut]:
    rows = Block.objects.filter(user=caller(request).user).select_related("blocked")
    return newest_first(rows, params, BlockOut.of_block)


@router.post("", auth=WRITE, response={201: BlockOut}, summary="Block a user")
def make_block(request: HttpRequest, body: BlockIn) -> BlockOut:
    user = caller(request).user
    blocked = User.objects.filter(username=body.username).first()
    if blocked is None:
        raise wrong_field("username", "no user has this login")
    if blocked == user:
        raise wrong_field("username", "you cannot block yourself")
    block, created = Block.objects.get_or_create(user=user, blocked=blocked)
    if not created:
        raise Problem(409, f"you have already blocked {body.username}", kind="exists")
    return BlockOut.of_block(block)


@router.delete("/{int:id}", auth=WRITE, response={204: None}, summary="Unblock a user")
def delete_block(request: HttpRequest, id: int) -> None:
    if not Block.objects.filter(user=caller(request).user, pk=id).delete()[0]:
        raise not_found("block")

"""What the user may do on Kafka, from the broker's answers."""

from types import SimpleNamespace
from typing import Any, cast

from collector.log.kafka.rights import READ, Right, missing_rights

NO_BITS = -(2**31)


class _Client:
    """Answers about a group, one after the other: its error code, and what is allowed."""

    def __init__(self, *answers: tuple[int, int]) -> None:
        self._answers = [*answers]

    def get_random_node(self) -> int:
        return 0

    async def coordinator_lookup(self, _kind: int, _group: str) -> int:
        return 0

    async def send(self, _node: int, request: object) -> object:
        if type(request).__name__ == "_Operations":
            return SimpleNamespace(topics=[])
        code, allowed = self._answers.pop(0)
        return SimpleNamespace(groups=[(code, "g", "", "", "", [], allowed)])


async def missing(*answers: tuple[int, int]) -> list[Right]:
    admin = cast(Any, SimpleNamespace(_client=_Client(*answers)))
    return await missing_rights(admin, topics=(), operations=(), groups=("g",))


async def test_a_coordinator_that_is_not_ready_is_asked_again() -> None:
    """Its answer says nothing of rights, and looked as if all were there."""
    assert await missing((14, NO_BITS), (16, NO_BITS), (0, 0)) == [Right(READ, "group", "g")]
    assert await missing((15, NO_BITS), (0, 1 << 3)) == []

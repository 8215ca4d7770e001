"""Everyday sessions as they are written down in `tests/data/everyday`, whoever records them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
import yaml

FOLDER = Path(__file__).parents[2] / "data" / "everyday"


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool call, made `times` times, with its result or error."""

    tool: str
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any], name="with")
    gives: Any = None
    fails: str | None = None
    times: int = 1

    @property
    def response_text(self) -> str:
        """What the model reads of it."""
        return as_text(self.gives) if self.fails is None else f"Error: {self.fails}"


class Turn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question, the calls that it took, and how it ended."""

    ask: str
    calls: tuple[Call, ...] = ()
    answer: str | None = None
    end: Literal["answered", "model_error", "killed"] = "answered"
    """`model_error`: the last call of the model failed. `killed`: the process died in the last tool call."""

    @property
    def every_call(self) -> tuple[Call, ...]:
        """The calls, each as often as it was made."""
        return tuple(call for call in self.calls for _ in range(call.times))


Session = tuple[Turn, ...]


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def sessions(name: str) -> dict[str, Session]:
    """The sessions of `tests/data/everyday/NAME.yaml`, by "kind: session"."""
    kinds: Mapping[str, Mapping[str, list[Any]]]
    kinds = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return {
        f"{kind}: {session}": tuple(_turn(each) for each in turns)
        for kind, of_kind in kinds.items()
        for session, turns in of_kind.items()
    }


def _turn(written: Any) -> Turn:
    if isinstance(written, list):
        question, answer = cast("list[str]", written)
        return Turn(ask=question, answer=answer)
    return msgspec.convert(written, Turn)


def long_sessions() -> dict[str, Session]:
    """Thirty turns with the same tool and other arguments; three with the same long instructions."""

    def quoted(n: int, price: int) -> Turn:
        call = Call(tool="quote", arguments={"share": f"S{n}"}, gives={"price": price})
        return Turn(
            ask=f"What does share {n} cost?",
            calls=(call,),
            answer=f"That share costs {price} euros at the moment.",
        )

    rules = "Summarise the ticket in one line: be brief and polite, name the product. " * 20
    kind = "The customer kindly reports that the delivery arrived late."
    return {
        "long: other prices": tuple(quoted(n, 100 + n) for n in range(30)),
        "long: one price": tuple(quoted(n, 100) for n in range(30)),
        "long: instructions": tuple(
            Turn(ask=f"{rules} Ticket: the {item} arrived late.", answer=kind)
            for item in ("shoes", "hat", "shirt", "coat")
        ),
    }

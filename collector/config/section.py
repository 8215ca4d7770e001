"""One level of the tree of settings, and what holds for each."""

from collections.abc import Iterator
from typing import Any, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from collector.config.values import is_url


class Strict(BaseModel):
    """Takes `true` and `false` for no number; YAML reads `yes` and `on` as true."""

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_as_number(cls, value: Any, info: ValidationInfo) -> Any:
        annotation = cls.model_fields[str(info.field_name)].annotation
        if _has_truth(value) and _takes_number(annotation):
            raise ValueError("expected a number, got true or false")
        return value


def _takes_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(map(_takes_number, get_args(annotation)))


def _has_truth(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_truth, cast(dict[Any, Any], value).values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_truth, cast(list[Any], value)))
    return isinstance(value, bool)


class Section(Strict):
    """One level of the tree: unknown keys are errors, values never change after start."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False
    )

    def conflicts(self, path: str) -> Iterator[str]:
        """What no single setting of this section can say: a line for each that does not fit the others.

        `path` is the section's own; each line begins with the path of the setting to change.
        """
        yield from ()


class Links(Section):
    """Templates of URLs."""

    trace: str | None = None
    agent: str | None = None

    def conflicts(self, path: str) -> Iterator[str]:
        """Templates of URLs, each with the name that it must hold."""
        example = "https://host/trace/{trace_id}"
        yield from _template(f"{path}.trace", self.trace, ("{trace_id}",), example)
        example = "https://host/d/spanwise-agents?var-service={service}&var-agent={agent}"
        yield from _template(f"{path}.agent", self.agent, ("{agent}", "{service}"), example)


def _template(path: str, url: str | None, names: tuple[str, ...], example: str) -> Iterator[str]:
    if url is None:
        return
    filled = url
    for name in names:
        filled = filled.replace(name, "0")
    if names[0] not in url or "{" in filled or not is_url(filled):
        yield f"{path}: expected a URL with {names[0]}, such as {example}"

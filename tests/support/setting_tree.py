"""Every setting of the tree, found in its types: what is added to it is tested like the others."""

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from collector.config.tree import Config

SAMPLES: Mapping[str, dict[str, Any]] = {
    "Tls": {"cert_file": "a", "key_file": "b"},
    "OwnJudge": {"rubric": "x"},
    "KafkaSink": {"bootstrap_servers": "a:9092"},
    "OtlpTarget": {"endpoint": "a:4317"},
    "LangfuseSink": {"public_key": "pk", "secret_key": "sk"},
    "LangsmithSink": {"api_key": "k", "project_id": "0123456789abcdef0123456789abcdef"},
    "DatadogSink": {"api_key": "k"},
    "MetricsTarget": {"endpoint": "a:4317"},
    "Price": {"input": 1, "output": 1},
}
"""By title, what a section cannot be without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One leaf of the tree."""

    path: tuple[str, ...]
    annotation: Any
    bounds: tuple[Any, ...]
    """The metadata of every type in it."""
    required: dict[str, Any]
    """What its section needs beside it."""

    @property
    def name(self) -> str:
        """`windows.trace.idle`."""
        return ".".join(self.path)

    @property
    def kinds(self) -> frozenset[type]:
        """The plain types that it takes."""
        return frozenset(_plain(self.annotation))

    def tree(self, value: Any) -> dict[str, Any]:
        """Settings in which only this one is set."""
        tree: dict[str, Any] = {**self.required, self.path[-1]: value}
        for part in reversed(self.path[:-1]):
            tree = {part: tree}
        return tree


def every_setting(
    section: type[BaseModel] = Config, path: tuple[str, ...] = ()
) -> Iterator[Setting]:
    """Of a section and all below; in a mapping of sections, the one of the key `x`."""
    title = section.model_config.get("title") or section.__name__
    for name, field in section.model_fields.items():
        sections = list(_sections(field.annotation))
        key = ("x",) if get_origin(field.annotation) is dict else ()
        for each in sections:
            yield from every_setting(each, (*path, name, *key))
        if not sections:
            yield Setting(
                path=(*path, name),
                annotation=field.annotation,
                bounds=(*field.metadata, *_metadata(field.annotation)),
                required=SAMPLES.get(title, {}),
            )


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _sections(part)


def _plain(annotation: Any) -> Iterator[type]:
    if get_origin(annotation) in (Union, types.UnionType, Annotated, tuple, dict):
        for part in get_args(annotation):
            yield from _plain(part)
    elif isinstance(annotation, type):
        yield annotation


def _metadata(annotation: Any) -> Iterator[Any]:
    yield from getattr(annotation, "__metadata__", ())
    for part in get_args(annotation):
        yield from _metadata(part)

"""Section `links`: where pages lead, in tools of the user's own."""

from __future__ import annotations

from collections.abc import Iterator

from collector.config.section import Section
from collector.config.values import is_url


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
    """A line if the URL lacks the first name, or holds braces beside these names."""
    if url is None:
        return
    filled = url
    for name in names:
        filled = filled.replace(name, "0")
    if names[0] not in url or "{" in filled or not is_url(filled):
        yield f"{path}: expected a URL with {names[0]}, such as {example}"

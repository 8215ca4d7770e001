"""`spanwise cases`: questions that went wrong in production, as cases of an expectations file.

The cases say what the agent did: whoever knows better corrects them. Two that ask the same and call the same tools are
one. Texts are as the service keeps them: what it redacts is redacted here, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from collector.base.errors import ConfigError
from collector.base.printable import printable
from collector.commands.ask import as_ours, ask_json, find
from collector.commands.output import note
from collector.config.strict_yaml import in_yaml, parse

WRONG = 2
PAGE = 100
"""Sessions of one answer."""
SIGNALS = 400  # signals of one answer
MOST = 10_000  # sessions that are looked through
HEAD = """\
# What the agent did, where it went wrong, as cases for the file under `expectations`.
# Correct each: the output, the tools in their order, their arguments. Then, over new recordings of these questions:
#   spanwise evaluate recordings/ --set expectations={file}
"""


@dataclass(slots=True)
class FoundCases:
    cases: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    alike: int = 0
    gone: int = 0  # traces whose spans the service no longer holds
    mute: int = 0  # traces without a question
    _seen: set[tuple[Any, ...]] = field(default_factory=set[tuple[Any, ...]])

    def add(self, case: dict[str, Any]) -> None:
        """A case, unless another one asks the same and calls the same tools."""
        match = case["match"]
        if "input" not in match:
            self.mute += 1
            return
        tools = tuple(each["name"] for each in case.get("tools", ()))
        key = (match.get("task"), " ".join(match["input"].casefold().split()), tools)
        if key in self._seen:
            self.alike += 1
            return
        self._seen.add(key)
        self.cases.append(case)


def command(  # noqa: PLR0913 - its options, one by one
    *,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only traces that did not pass an evaluator.")
    ] = False,
    evaluator: Annotated[
        str | None, typer.Option(metavar="NAME", help="This one; with --failed.")
    ] = None,
    service: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="30m, 24h, 7d, or a time such as 2026-03-01T14:00.")
    ] = "7d",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Cases.")] = 50,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Default: standard output.")
    ] = None,
    url: Annotated[
        str, typer.Option(metavar="URL", help="The page of a running service.")
    ] = "http://127.0.0.1:4390",
    token: Annotated[str | None, typer.Option(help="Of `admin.bearer_tokens`.")] = None,
) -> None:
    """Cases for an expectations file, of sessions that a running service holds; the least reliable first."""
    chosen = {"service": service, "agent": agent, "since": since, "failed": evaluator}
    asked = {name: text for name, text in chosen.items() if text}
    try:
        with as_ours(url):
            found = _found(url, asked, token, limit, is_failed=failed, evaluator=evaluator)
    except ConfigError as error:
        note(printable(str(error)))
        raise typer.Exit(WRONG) from error
    text = HEAD.format(file=output or "cases.yaml") + in_yaml(found.cases)
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
    passed_over = (
        (found.alike, "like another"),
        (found.mute, "without a question"),
        (found.gone, "no longer held"),
    )
    more = "".join(f", {count} {why}" for count, why in passed_over if count)
    note(f"{len(found.cases)} cases{more}")


def _found(
    url: str,
    asked: Mapping[str, str],
    token: str | None,
    limit: int,
    *,
    is_failed: bool,
    evaluator: str | None,
) -> FoundCases:
    found = FoundCases()
    for session in _sessions(url, asked, token):
        for trace_id in _traces(url, session, token, is_failed=is_failed, evaluator=evaluator):
            body = find(url, "/trace/case", {"id": trace_id}, token)
            if body is None:
                found.gone += 1
                continue
            for case in parse(body.decode()):
                found.add(case)
            if len(found.cases) >= limit:
                return found
    return found


def _sessions(url: str, asked: Mapping[str, str], token: str | None) -> Iterator[dict[str, Any]]:
    cursor: dict[str, str] = {}
    for _ in range(MOST // PAGE):
        given = {**asked, "sort": "reliability", "limit": str(PAGE), **cursor}
        page = ask_json(url, "/api/v1/sessions", given, token)
        yield from page["items"]
        if page["next"] is None:
            return
        cursor = {"cursor": page["next"]}


def _traces(
    url: str,
    session: Mapping[str, Any],
    token: str | None,
    *,
    is_failed: bool,
    evaluator: str | None,
) -> list[str]:
    """Ids of its traces, each once; those that did not pass, where it is asked for them."""
    given = {"session_id": session["session_id"], "limit": str(SIGNALS)}
    if evaluator is not None:
        given["evaluator"] = evaluator
    signals = ask_json(url, "/api/v1/signals", given, token)["items"]
    of_session = [each for each in signals if each["service"] == session["service"]]
    return list(
        dict.fromkeys(
            each["trace_id"]
            for each in reversed(of_session)
            if each["scope"] == "trace" and (not is_failed or each["success"] is False)
        )
    )

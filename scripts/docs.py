"""The generated pages of docs/: `python -m scripts.docs [FOLDER]` writes them, a test fails when one is stale."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from collector.slo.rules import Rule, rules
from evaluators.declare import Spec
from evaluators.dialects import registry
from evaluators.dialects.advise import all_advice
from evaluators.dialects.dialect import Advice, Dialect
from evaluators.registry import Registry
from scripts.arguments import path_argument
from scripts.help_page import TEMPLATE, help_template

HEADLINES = {
    "spanwise_agent_reliability_ratio": "mean reliability of the newest sessions, by agent and version",
    "spanwise_agent_consistency_ratio": "mean consistency of the newest sessions",
    "spanwise_fault_detected": "1 while a tool, model calls or answers fail more often than before",
    "spanwise_drift_detected": "1 while a score is worse than the agent's own past",
    "spanwise_drift_mean_rank_ratio": "how much worse: 0.5 means no change",
    "spanwise_runaway_traces": "open traces that run away now",
}
ROOT = Path(__file__).parents[1]
NOTE = "<!-- Made by `python -m scripts.docs`; edit what it is made of instead. -->\n"


def pages() -> dict[str, str]:
    """Every generated page, by file name."""
    settings = (ROOT / "spanwise.yaml").read_text(encoding="utf-8")
    return {
        "evaluators.md": evaluators_page(Registry.discover([])),
        "dialects.md": dialects_page(),
        "configuration.md": configuration_page(settings),
        "prometheus.md": prometheus_page(),
    }


# --- evaluators ------------------------------------------------------------------------------------------------------


def evaluators_page(specs: Iterable[Spec]) -> str:
    """One section per name, its methods below each other."""
    by_scope = {"trace": "Of a trace", "session": "Of a session"}
    listed = list(specs)
    lines = [
        "# Evaluators",
        "",
        NOTE,
        "An evaluator that reads text does not run where the spans carry none, and one that reads tool calls or tool",
        "definitions then only tells what failed: `not_applicable` with reason `no_content`, see",
        "[signals](signals.md#blind-is-not-perfect). One of your own reads text and tool calls unless it declares",
        "`@spanwise.evaluator(..., reads={...})` with any of `text` `tool_calls` `tool_definitions` `root` `session`",
        "`tokens`.",
        "",
        "The value of one of your own, and of a judge of your configuration, is clamped to [0, 1]; not a number is",
        "`failed` with `invalid_score`. One that hangs or dies is `failed` with `timeout` or `worker_died` and ends a",
        "process of its own: no other score is lost ([an evaluator of your own](own-evaluator.md)).",
        "",
    ]
    for scope, title in by_scope.items():
        names = dict.fromkeys(spec.name for spec in listed if spec.scope == scope)
        lines += [f"## {title}", ""]
        for name in names:
            siblings = [spec for spec in listed if spec.name == name]
            source = ", ".join(dict.fromkeys(spec.source for spec in siblings))
            lines += [f"### `{name}`", "", f"Defined by: {source}.", ""]
            for spec in siblings:
                lines += _of_method(spec)
    return "\n".join(lines)


def _of_method(spec: Spec) -> list[str]:
    needs = ", ".join(spec.needs) or "nothing"
    threshold = "no pass or fail" if spec.threshold is None else f"threshold {spec.threshold:g}"
    on = "on once its needs are met" if spec.on else "on by name only"
    reads = ", ".join(kind.replace("_", " ") for kind in sorted(spec.reads))
    lines = [
        f"**{spec.method}**, version {spec.version}, {threshold}; needs {needs}; reads {reads}; {on}.",
        "",
        re.split(r"\n+(?:Args|Raises):", spec.doc)[0],
        "",
    ]
    if spec.options:
        rows = [(f"`{key}`", f"`{value!r}`") for key, value in spec.options.items()]
        lines += [*_table(("option", "default"), rows), ""]
    return lines


# --- dialects --------------------------------------------------------------------------------------------------------


def dialects_page() -> str:
    """The keys that are read, and the settings that add missing content."""
    tables = {dialect.name: dialect for dialect in registry.DIALECTS if dialect.rows()}
    bare = [f"`{d.name}`" for d in registry.DIALECTS if d.name not in tables]
    lines = [
        "# Dialects",
        "",
        NOTE,
        "A dialect is chosen per span: the first on this page that fits. Keys are tried in the order given; `N` is",
        "an index. Most instrumentations write attributes of the GenAI conventions too: what a dialect leaves open",
        f"is then read from the rows of `genai`. {', '.join(bare)} are names for",
        "spans of these scopes that are read as `genai`.",
        "",
        "LangGraph, under every instrumentation: the name given to `create_agent(name=...)` is the agent's.",
        "LangChain puts it into the metadata of each run (`lc_agent_name`, beside `langgraph_node`), which stands in",
        "`metadata`, `langfuse.observation.metadata.*`, `langsmith.metadata.*` or",
        "`traceloop.association.properties.*`. Without it the agent is the graph (`compile(name=...)`), and without",
        "that the service: `LangGraph`, and a node called `agent`, are not names.",
        "",
        "An agent's span (`invoke_agent`, kind `AGENT`, type `agent`, ...) that has an output and no model call",
        "beneath it is a step: a trace of such spans is a turn, and its last step is the answer where no span around",
        "has one. A workflow's span of OpenLLMetry is a step only when its output is a conversation.",
        "",
        "A trace that is only a piece of another one's turn is read and kept, but has no signals, no session and no",
        "agent: what an MCP server exports of a request (`mcp.method.name`) where its caller's spans are elsewhere,",
        "and a step of rig without a span of the application's own around it.",
        "",
        "What a tool returned is read without what its framework puts around it: the call's id, name and times.",
        "An object counts as such an envelope where it names its call or holds a key that no tool writes of itself.",
        "`{id, output, created}` names no call, so it stays as it is: a tool may return just that. The word",
        "`Observation:` in front of a result is an envelope under smolagents alone.",
        "",
        "A call failed where its span or result says so: the span's status, `error.type`, an `isError` in any",
        "spelling, a state of error beside the result, or a result that is only an error: `{error}`,",
        "`{status: error, message}`, `{success: false, message}` or Claude's `<tool_use_error>` around the whole.",
        "With anything else beside it, an `error` or a `status` is what the tool found. Attributes count under",
        "`tool.`, `mcp.`, `jsonrpc.` and `gen_ai.tool.` that end in `error`, `error_code`, `status` or `success`.",
        "Plain `error`, `error.message`, `exception.message`, `exception.type` and `success` count as well.",
        "Words count only under the framework that writes them: ADK, CrewAI, smolagents, Claude Code and the",
        "OpenAI Agents SDK.",
        "",
    ]
    for name, dialect in tables.items():
        cells = [(r.field, r.on, " ".join(f"`{key}`" for key in r.keys)) for r in dialect.rows()]
        lines += [f"## {name}", "", _sample(dialect), ""]
        lines += [*_table(("field", "on", "read from"), cells), ""]
    lines += ["## What to set where something is missing", "", "As `spanwise doctor` says it.", ""]
    advice = [
        (_who(a), ", ".join(a.lacks), f"`{a.setting}`", a.note, a.source) for a in all_advice()
    ]
    heads = ("scopes and dialects", "supplies", "setting", "note", "source")
    return "\n".join([*lines, *_table(heads, advice), ""])


def _who(advice: Advice) -> str:
    """Whose programs the advice is for."""
    spoken = ", ".join(advice.speakers) or "any"
    return f"{spoken} ({advice.language})" if advice.language else spoken


def _sample(dialect: Dialect) -> str:
    """The least by which a span is of the dialect and a kind."""
    sample = dialect.sample
    spans: list[str] = []
    for on, attributes in sample.spans.items():
        texts = [f"{key}={value}" for key, value in attributes.items()]
        texts = [f"name={sample.names[on]}", *texts] if on in sample.names else texts
        if on != "any":  # a row on any span, not a kind
            least = " ".join(f"`{text}`" for text in texts) or "(no attribute needed)"
            spans.append(f"{on} {least}")
    scope = f", in scope `{sample.scope}`" if sample.scope else ""
    event = f", each with an event `{dialect.event}*`" if dialect.event else ""
    return f"For example{scope}: {'; '.join(spans)}{event}."


# --- Prometheus ------------------------------------------------------------------------------------------------------


def prometheus_page() -> str:
    """The scrape, and every expression of the rules, to be copied into a panel or an alert."""
    lines = [
        "# Prometheus",
        "",
        NOTE,
        "```yaml",
        "# prometheus.yml",
        "scrape_configs:",
        "  - job_name: spanwise",
        "    static_configs: [{targets: ['127.0.0.1:4390']}]",
        "rule_files: [spanwise.rules.yml]",
        "```",
        "",
        "```sh",
        "spanwise slo > spanwise.rules.yml",
        "```",
        "",
        "The expressions below are those of `spanwise slo --objective 0.9`, to be copied into a panel or a rule of",
        "your own; the tests evaluate the same ones. [Alerting](alerting.md) says what to do when one fires,",
        "[operate](operate.md) what each family counts. The Grafana dashboard is `helm/spanwise/files/dashboard.json`.",
        "",
        "## What agents are like now",
        "",
        *(f"- {what}: `{family}`" for family, what in HEADLINES.items()),
        "",
    ]
    for section, found in _sections():
        lines += [f"## {section}", "", *(line for rule in found for line in _of_rule(rule))]
    return "\n".join(lines)


def _sections() -> Iterator[tuple[str, list[Rule]]]:
    every = [rule for group in rules(0.9) for rule in group["rules"]]
    usual = [rule["alert"] for group in rules() for rule in group["rules"] if "alert" in rule]
    alerts = [rule for rule in every if "alert" in rule]
    yield "Alerts without any setting", [each for each in alerts if each["alert"] in usual]
    yield "Alerts on an objective", [each for each in alerts if each["alert"] not in usual]
    yield "Recording rules of these", [each for each in every if "alert" not in each]


def _of_rule(rule: Rule) -> list[str]:
    name = rule.get("alert") or rule.get("record", "")
    about = ""
    if "alert" in rule:
        about = f"Fires after {rule.get('for', '0m')}. [What to do](alerting.md#{name.lower()})."
    return [
        f"### `{name}`",
        "",
        *([about, ""] if about else []),
        "```promql",
        rule["expr"].strip(),
        "```",
        "",
    ]


# --- configuration ---------------------------------------------------------------------------------------------------


_KEYED = re.compile(r"[a-z_]+: ")


class Setting(NamedTuple):
    """One key of spanwise.yaml."""

    path: str
    default: str
    meaning: str


def configuration_page(text: str) -> str:
    """Every key with its default and what the file's comment on its line says."""
    rows = [(f"`{s.path}`", f"`{s.default}`", s.meaning) for s in settings_of(text)]
    lines = [
        "# Configuration",
        "",
        NOTE,
        "A file holds only what differs from the defaults. Every key is also `SPANWISE_<PATH>` with `__` between",
        "levels (`SPANWISE_ADMIN__PORT`) and `--set path=value`; later files win, then the environment, then `--set`.",
        "Durations: `500ms 5s 30m 24h`, a number without a unit is seconds; sizes: `64KiB 64MiB 4GiB`, without a unit",
        "bytes. `${env:NAME}` and `${env:NAME:-default}` are substituted. A text from the environment, from `--set`",
        "or from a `${env:NAME}` alone is taken as it is, without white space at its ends: a secret may begin",
        "with `#`, a host may be `::`, an empty one is `null`. Where no text is wanted, it is read as YAML, such as",
        "`[a, b]`. Keys on one line of the file share its comment.",
        "",
        *_table(("key", "default", "meaning"), rows),
        "",
    ]
    return "\n".join(lines)


def settings_of(text: str) -> Iterator[Setting]:
    """The leaves of the file, in its order."""
    comments = [_comment(line) for line in text.splitlines()]
    loader = yaml.SafeLoader(text)
    for path, node, line in _leaves(loader.get_single_node(), ()):
        default = text[node.start_mark.index : node.end_mark.index].strip()
        yield Setting(".".join(path), default, _own(comments[line], path[-1]))


def _leaves(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, int]]:
    for key, value in node.value:
        below = (*path, str(key.value))
        if isinstance(value, yaml.MappingNode) and value.value:
            yield from _leaves(value, below)
        else:
            yield below, value, int(key.start_mark.line)


def _comment(line: str) -> str:
    """What stands behind `#` at the end of a line; a text with a `#` in it is not in the file."""
    head, mark, comment = line.partition(" #")
    return comment.strip() if mark and head.strip() else ""


def _own(comment: str, key: str) -> str:
    """What a comment says of one key of its line: `key: text` among others parted by `; `, else all of it."""
    parts = dict(part.split(": ", 1) for part in comment.split("; ") if _KEYED.match(part))
    return parts.get(key, comment)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in lines]


def main(folder: Path) -> None:
    """Write every page."""
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    if folder == ROOT / "docs":
        TEMPLATE.write_text(help_template(), encoding="utf-8")


if __name__ == "__main__":
    main(path_argument(__doc__, ROOT / "docs"))

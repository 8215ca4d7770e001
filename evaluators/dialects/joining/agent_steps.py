"""Steps of agents whose model calls left no spans: an agent span that answers is then all that is known of the step."""

from collections.abc import Iterable, Sequence

from evaluators.dialects.content.facts import Content, Facts
from evaluators.dialects.joining.model_calls import Exchange
from evaluators.dialects.joining.texts import cap
from evaluators.dialects.joining.tree import Agents, Tree
from evaluators.model import AgentStep


def find_agent_steps(
    tree: Tree, exchanges: Sequence[Exchange], agents: Agents
) -> tuple[AgentStep, ...]:
    """Agent spans that answer without a model call beneath them, in order of start.

    An agent span around other steps is one more step, after them, when it says what none of them said. A workflow's
    span, which need not be an agent, is a step only when its output is a conversation.
    """
    spoken = [f for f in tree.order if f.kind == "agent" and f.output is not None]
    if not spoken:
        return ()
    around = _around(tree, (facts for exchange in exchanges for facts in exchange.layers))
    answers = {
        facts.span.span_id: _StepAnswer(facts, text)
        for facts in spoken
        if facts.span.span_id not in around and (text := _said(facts)) is not None
    }
    for answer in answers.values():
        for outer in tree.ancestors(answer.facts):
            if outer.span.span_id in answers:
                answers[outer.span.span_id].within.append(answer)
    steps = [each for each in answers.values() if each.is_its_own]
    steps.sort(key=lambda each: (each.place, len(each.within)))
    return tuple(each.step(agents) for each in steps)


class _StepAnswer:
    def __init__(self, facts: Facts, text: str) -> None:
        self.facts = facts
        self.text = text
        self.plain = " ".join(text.split())
        self.within: list[_StepAnswer] = []  # the answers of agents within it

    @property
    def is_its_own(self) -> bool:
        return all(self.plain != inner.plain for inner in self.within)

    @property
    def place(self) -> int:
        return max(each.facts.span.start_time_unix_nano for each in (self, *self.within))

    def step(self, agents: Agents) -> AgentStep:
        span = self.facts.span
        return AgentStep(
            span_id=span.span_id,
            agent=agents.named_by(self.facts),
            output=self.text,
            start_time_unix_nano=span.start_time_unix_nano,
            # A span that never ended has no end.
            end_time_unix_nano=max(span.start_time_unix_nano, span.end_time_unix_nano),
        )


def _said(facts: Facts) -> str | None:
    output = facts.output
    if output is None or (facts.is_workflow and not output.messages):
        return None
    return cap(output.text or _only_message(output))


def _only_message(output: Content) -> str | None:
    messages = output.messages
    return messages[0].text if len(messages) == 1 and messages[0].role == "user" else None


def _around(tree: Tree, inner: Iterable[Facts]) -> set[str]:
    """The spans around any of these; a chain that was walked before is not walked again."""
    found: set[str] = set()
    for facts in inner:
        for outer in tree.ancestors(facts):
            if outer.span.span_id in found:
                break
            found.add(outer.span.span_id)
    return found

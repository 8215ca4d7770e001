"""What the names of GenAI events say, whether they came as log records or on a span."""

DETAILS = "gen_ai.client.inference.operation.details"
CHOICE = "gen_ai.choice"
PROMPTS = frozenset({"gen_ai.content.prompt", "gen_ai.prompt"})
COMPLETIONS = frozenset({"gen_ai.content.completion", "gen_ai.completion"})
EVALUATION = "gen_ai.evaluation.result"
"""A score of an evaluator: it says something about the trace and is not part of it."""
_WHOLE = {DETAILS, CHOICE} | PROMPTS | COMPLETIONS


def carries_messages(name: str) -> bool:
    return name in _WHOLE or (name.startswith("gen_ai.") and name.endswith(".message"))

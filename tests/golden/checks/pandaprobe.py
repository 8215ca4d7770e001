"""PandaProbe's trace and session metrics."""

from typing import Any

from evaluators.matching.text import text_of
from evaluators.model import Outcome, Previous
from evaluators.plan import Settings, make_plan
from evaluators.providers.scripted import ScriptedEmbedder
from evaluators.run import score_trace
from tests.golden.checks.compare import close
from tests.support.evaluating import OURS, a_trace, a_turn, session_outcomes


def coherence(given: Any, expected: Any, _quirk: str | None) -> None:
    texts = text_of(given["input"]), text_of(given["output"])
    vectors = given["input_vector"], given["output_vector"]
    if texts[0] == texts[1] and vectors[0] != vectors[1]:
        # One text cannot have two vectors: only the pair's own distance is meant.
        texts = texts[0], texts[1] + " "
    embedder = ScriptedEmbedder(dict(zip(texts, vectors, strict=True)))

    outcome = _run("coherence", given, texts, embedder=embedder)

    _same(outcome, expected, tolerance=1e-4)
    assert sum(embedder.asked, ()) == tuple(
        dict.fromkeys(texts if expected["embedded_texts"] else [])
    )


def loop_detection(given: Any, expected: Any, quirk: str | None) -> None:
    outputs: list[Any] = given["previous_outputs"] or []
    history = tuple(
        Previous(trace_id=f"{n}", digest=f"{n}", output=text_of(output))
        for n, output in enumerate(outputs)
    )
    embedder = ScriptedEmbedder({each["text"]: each["vector"] for each in given["embeddings"]})
    texts = None, text_of(given["current_output"])

    outcome = _run("loop_detection", given, texts, embedder=embedder, history=history)

    asked = [text for batch in embedder.asked for text in batch]
    assert asked == list(dict.fromkeys(expected["embedded_texts"]))
    if quirk is not None and given["threshold"] == 0 and "threshold" in expected["metadata"]:
        metadata = {**expected["metadata"], "threshold": 0.0, "success": True}
        expected = {**expected, "metadata": metadata}
    # trace_index of the window; the reference counts from the session's first output.
    offset = max(0, len(outputs) - 3)
    mine = outcome.metadata.get("comparisons", [])
    for ours, theirs in zip(mine, expected["metadata"].get("comparisons", []), strict=True):
        true_index = ours["trace_index"] + offset
        if quirk is not None:
            assert text_of(outputs[true_index]) != ""
            theirs["trace_index"] = ours["trace_index"]
        else:
            theirs["trace_index"] -= offset
    _same(outcome, expected, tolerance=1.1e-4)


def session_metrics(given: Any, expected: Any, quirk: str | None) -> None:
    # A present but empty set of signals is a trace that something else scored.
    other = {"something_else": 1.0} if given["signals"] else {}
    # Calibrated risks, which the documents' own inputs do not read.
    calibrated = {"confidence": 0.01, "loop_detection": 0.99, "tool_correctness": 0.5}
    turns = [
        a_turn(trace_id, n, {**other, **given["signals"].get(trace_id, {})}, risks=calibrated)
        for n, trace_id in enumerate(given["trace_ids"])
    ]
    names = ["agent_reliability", "agent_consistency"]
    options: dict[str, Any] = {
        "signal_weights": given["signal_weights"] or {},
        "signals": ["confidence", "loop_detection", "tool_correctness", "coherence"],
        "inputs": "raw",
    }
    settings = {name: Settings(options=options) for name in names}
    outcomes = session_outcomes(make_plan(OURS, settings, embedder=None, only=names), *turns)

    if quirk == "duplicate_trace_id_counted_twice":
        counted = outcomes["agent_reliability"].metadata.get("traces_evaluated", 0)
        assert counted == sum(
            not set(options["signals"]).isdisjoint(given["signals"].get(trace_id, {}))
            for trace_id in set(given["trace_ids"])
        )
        return
    for name in names:
        _same(outcomes[name], expected[name], tolerance=1.1e-4)
        if "reason" in expected[name]:
            assert outcomes[name].explanation == expected[name]["reason"]


def _run(name: str, given: Any, texts: tuple[str | None, str | None], **resources: Any) -> Outcome:
    settings = {name: Settings(threshold=given["threshold"])}
    plan = make_plan(OURS, settings, embedder="scripted", only=[name])
    trace = a_trace(input=texts[0], output=texts[1])
    (outcome,) = score_trace(plan, trace, **resources)
    return outcome


def _same(outcome: Outcome, expected: Any, *, tolerance: float) -> None:
    """Same number and metadata; an early exit's number stands in `assumed`."""
    number = outcome.assumed if outcome.state == "not_applicable" else outcome.score
    close(number, expected["score"], tolerance=tolerance)
    close(dict(outcome.metadata), expected["metadata"], tolerance=tolerance)

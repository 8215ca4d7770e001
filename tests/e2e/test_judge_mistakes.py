"""Mistakes about judges, as the user meets them: one line that names the setting."""

from pathlib import Path

import pytest

from tests.support.command import settings, spanwise
from tests.support.openai_server import OpenAiServer

pytestmark = [pytest.mark.e2e]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            ["judge.model=local/nobody-knows", "judge.budget.usd_per_day=5"],
            ["judge.model:", "price of `local/nobody-knows` is not known", "judge.price"],
        ),
        (
            [
                "embedder.kind=litellm",
                "embedder.model=local/nobody-knows",
                "judge.budget.usd_per_day=5",
            ],
            ["embedder.model:", "price of `local/nobody-knows` is not known"],
        ),
        (["evaluators.helpfulness.enabled=true"], ["evaluators.helpfulness:", "judge.model"]),
        (["embedder.kind=litellm"], ["embedder.model: required"]),
    ],
)
def test_settings_that_do_not_fit_are_named(given: list[str], words: list[str]) -> None:
    spanwise("validate", *settings(*given)).assert_one_line(*words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- {match: {turn: 1}, outputs: x}", ["entry 1", "`outputs`"]),
        ("- [", ["cannot be read"]),
        ("match: {turn: 1}", ["expected a list of entries"]),
    ],
)
def test_an_expectations_file_with_a_mistake_is_named_by_its_path(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    file = tmp_path / "expected.yaml"
    file.write_text(text)
    spanwise("validate", *settings(f"expectations={file}")).assert_one_line(str(file), *words)


def test_connect_tries_the_models_and_says_one_line_for_each_that_fails() -> None:
    with OpenAiServer() as server:
        models = settings(
            *server.settings,
            "embedder.kind=litellm",
            "embedder.model=openai/test-vectors",
            f"embedder.base_url={server.url}",
            "embedder.api_key=none",
        )
        good = spanwise("validate", "--connect", *models)
        asked = len(server.requests)
        server.mode = "500"
        bad = spanwise("validate", "--connect", *models)
    assert good.code == 0, good.err
    assert good.out.startswith("tried, and all right: data_dir, sinks.jsonl, judge.model, embedder")
    assert asked == 1
    assert bad.code == 1
    (line,) = bad.complaints
    assert line.startswith("judge.model: `openai/test-judge` at http://127.0.0.1")
    assert "provider_error" in line


def test_connect_asks_a_model_of_one_evaluator_alone_too_and_each_once() -> None:
    with OpenAiServer() as server:
        models = settings(
            *server.settings,
            "evaluators.task_completion.model=openai/b",
            "evaluators.plan_quality.model=openai/test-judge",
        )
        good = spanwise("validate", "--connect", *models)
        asked = [each["model"] for each in server.requests]
        server.mode = "500"
        bad = spanwise("validate", "--connect", *models)

    assert good.code == 0, good.err
    assert asked == ["test-judge", "b"]
    assert [line.partition(":")[0] for line in bad.complaints] == [
        "judge.model",
        "evaluators.task_completion.model",
    ]

"""A model on AWS needs a library that the lock file leaves out; the configuration says so."""

import importlib.util
from importlib.machinery import ModuleSpec

import pytest

from collector.base.errors import ConfigError
from collector.config.load import load
from evaluators.providers.litellm import missing_library

OURS = "judge.model=bedrock/anthropic.claude-3-haiku-20240307-v1:0"


@pytest.fixture(params=[True, False], ids=["installed", "missing"])
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    real = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        if name == "boto3":
            return ModuleSpec("boto3", None) if request.param else None
        return real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    return request.param


AWS = ("bedrock/converse/x", "sagemaker/my-endpoint", "writer.palmyra-x5-v1:0")
OTHERS = ("gpt-4o-mini", "openai/bedrock", "huggingface/together/x/y", "unknown")


def test_a_model_on_aws_needs_boto3_and_no_other_does(installed: bool) -> None:
    assert {missing_library(model) for model in AWS} == {None if installed else "boto3"}
    assert {missing_library(model) for model in OTHERS} == {None}


def test_a_judge_that_cannot_be_asked_is_refused_by_the_process_that_would_ask_it(
    installed: bool,
) -> None:
    if installed:
        assert load([], {}, [OURS])
        return
    with pytest.raises(ConfigError, match=r'judge.model: .* needs boto3: .*"spanwise\[bedrock\]"'):
        load([], {}, [OURS])
    elsewhere = [
        "roles=[receive, assemble]",
        "log.kind=kafka",
        "log.kafka.bootstrap_servers=k:9092",
    ]
    assert load([], {}, [OURS, *elsewhere])

"""A worker gets its settings, not the configuration: the same plan, without what checking a configuration takes."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from collector.config.plan import checked_plan, plan_from
from collector.config.tree import Config
from collector.reading.port import ReaderSettings, reader_settings

UNUSED = ("pydantic", "asyncio", "ssl", "numpy", "jsonschema")


@pytest.mark.process
def test_a_plan_is_the_same_where_its_settings_arrive(tmp_path: Path) -> None:
    plugin, expectations = tmp_path / "mine.py", tmp_path / "expected.json"
    plugin.write_text(
        "from evaluators import Score, Trace, evaluator\n\n"
        '@evaluator(version="1")\n'
        "def loud(trace: Trace, *, most: float = 0.5) -> Score:\n"
        '    """How loud it is."""\n'
        "    return Score(value=most)\n"
    )
    expectations.write_text("[]")
    config = Config.model_validate(
        {
            "plugins": [str(plugin)],
            "expectations": str(expectations),
            "evaluators": {
                "mine/loud": {"threshold": 0.25, "most": 10**30},
                "confidence": {"enabled": False},
            },
            "judges": {"polite": {"rubric": "Is it polite?", "threshold": 0.9}},
            "judge": {"model": "openai/some-model"},
            "attributes": {"session": ["my.session"]},
            "tasks": {"read_only": ["find"]},
            "redaction": {"patterns": {"mail": "email", "mine": "x+y"}, "key": "eight or more"},
        }
    )

    found: dict[str, str] = {}
    for package in ("", "mine"):  # each process has what concerns its evaluators
        settings = reader_settings(config, package)
        arrived = msgspec.json.decode(msgspec.json.encode(settings), type=ReaderSettings)
        assert arrived == settings
        found |= {
            each.spec.name: each.options_digest
            for each in checked_plan(arrived.plan)
            if each.spec.name.startswith("mine/") == bool(package)
        }
    assert found == {each.spec.name: each.options_digest for each in plan_from(config)}


@pytest.mark.process
def test_a_worker_starts_without_the_libraries_that_it_does_not_use() -> None:
    code = (
        "import sys, collector.reading.worker; "
        f"print([each for each in {UNUSED!r} if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"

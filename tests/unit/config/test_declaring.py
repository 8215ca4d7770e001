"""What third parties declare is found out in other processes: whatever an import does, it stays there."""

import sys
from pathlib import Path

import pytest

from collector.base.child import MOST_PRINTED
from collector.base.errors import ConfigError
from collector.config import declaring
from collector.config.declaring import Plugin
from collector.config.plan import plan_from, plan_settings, registry_from
from collector.config.tree import Config
from evaluators.errors import PluginError, PluginNotFound
from tests.support.bad_plugins import IMPORTS

pytestmark = pytest.mark.process
GOOD = """
from evaluators import Score, Session, Trace, evaluator

@evaluator(version="7", threshold=0.25)
def loud(trace: Trace, *, most: float = 0.5) -> Score:
    '''How loud it is.'''
    return Score(value=most)

@evaluator(version="1")
def long(session: Session) -> Score:
    return Score(value=1.0)
"""


def written(folder: Path, source: str, name: str = "mine") -> str:
    file = folder / f"{name}.py"
    file.write_text(source)
    return str(file)


def config(*plugins: str, **evaluators: object) -> Config:
    named = {name.replace("__", "/"): each for name, each in evaluators.items()}
    return Config.model_validate({"plugins": plugins, "evaluators": named})


def test_what_it_declares_is_known_and_it_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith("spanwise_plugins")]:
        monkeypatch.delitem(sys.modules, name)  # by a test before this one in the same process
    file = written(tmp_path, GOOD)
    chosen = config(file, mine__loud={"most": 1})

    registry = registry_from(chosen)
    plan = plan_from(chosen, registry=registry)

    (loud,) = registry.named("mine/loud")
    declared = (loud.scope, loud.version, loud.threshold, loud.doc)
    assert declared == ("trace", "7", 0.25, "How loud it is.")
    (configured,) = [each for each in plan.plugins if each.spec.name == "mine/loud"]
    assert repr(configured.options) == "{'most': 1.0}"  # as the type of the option takes it
    assert {each.spec.name for each in plan.plugins} == {"mine/loud", "mine/long"}
    assert not [each for each in sys.modules if each.startswith("spanwise_plugins")]
    written(tmp_path, GOOD.replace("loud", "silent"))
    assert registry_from(config(file)).named("mine/silent"), "what changed is seen"
    with pytest.raises(PluginNotFound, match="no such file"):
        registry_from(config(str(tmp_path / "gone.py")), strict=False)


@pytest.mark.parametrize(
    ("evaluators", "message"),
    [
        ({"mine__loud": {"most": "much"}}, "evaluators.mine/loud.most"),
        ({"mine__loud": {"least": 1}}, "evaluators.mine/loud.least: no such option"),
        ({"mine__quiet": {"enabled": True}}, "evaluators.mine/quiet: no evaluator of that name"),
    ],
)
def test_a_wrong_setting_is_an_error(
    tmp_path: Path, evaluators: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        plan_from(config(written(tmp_path, GOOD), **evaluators))


def test_a_bad_import_stops_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(declaring, "IMPORT_TIMEOUT", 15.0)  # the good ones are imported in it
    files = [written(tmp_path, source, name) for name, source in IMPORTS.items()]
    prints = written(tmp_path, "print('as it is imported')\n" + GOOD, "import_prints")
    chosen = config(*files, prints, written(tmp_path, GOOD), import_raises__gone={"threshold": 0.1})

    registry = registry_from(chosen, strict=False)

    assert {name: str(error).split("`: ")[1] for name, error in registry.broken.items()} == {
        "import_raises": "RuntimeError('not today')",
        "import_exits": "its import ended the process (exit code 5)",
        "import_interrupts": "KeyboardInterrupt: ",
        "import_hangs": "its import took more than 15 s",
        "import_leaves_session": "RuntimeError('left a process that holds all pipes open')",
    }
    assert registry.named("import_prints/loud")
    assert registry.named("mine/loud")
    settings = plan_settings(chosen)
    assert [Path(each).stem for each in settings.plugins] == ["import_prints", "mine"]
    assert not settings.evaluators  # no process of ours meets the name of what is left out
    output, errors = capfd.readouterr()
    assert output == ""
    assert "as it is imported" in errors
    with pytest.raises(PluginError, match="not today"):
        registry_from(chosen)


@pytest.mark.parametrize("descriptor", ["1", "2", "int(sys.argv[1])"])
def test_what_is_written_as_it_is_imported_is_not_read_without_end(
    descriptor: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(declaring, "IMPORT_TIMEOUT", 3.0)
    endless = f"import os, sys\nwhile True: os.write({descriptor}, b'x' * 65536)"

    registry = registry_from(config(written(tmp_path, endless)), strict=False)

    assert "its import " in str(registry.broken["mine"])
    assert 0 < len(capfd.readouterr().err) <= 8 * MOST_PRINTED  # a part a second, its last words


def test_an_error_of_an_import_that_cannot_be_said_is_said(tmp_path: Path) -> None:
    source = (
        "class Unsayable(Exception):\n    def __repr__(self): raise self\n    __str__ = __repr__\n"
    )
    file = written(tmp_path, f"{source}raise Unsayable")

    found = declaring.declare(Plugin(name=file, is_installed=False, settings={}))

    assert found.error == f"plugin `{file}`: an exception whose text cannot be read"

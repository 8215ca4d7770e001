"""Rules that hold for every setting of the tree, whatever is added to it: from a file, the environment and `--set`."""

import json
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import SecretStr, TypeAdapter, ValidationError

from collector.base.errors import ConfigError
from collector.config.load import load
from collector.config.plan import plan_from
from collector.config.values import Endpoint, Url
from evaluators.errors import SettingsError
from evaluators.registry import Registry
from tests.support.setting_tree import Setting, every_setting
from tests.support.table import for_each

SETTINGS = {each.name: each for each in every_setting()}
NUMBERS = [name for name, each in SETTINGS.items() if each.kinds & {int, float}]
TEXTS = [name for name, each in SETTINGS.items() if each.kinds & {str, Path, SecretStr}]
ADDRESSES = [name for name in SETTINGS if name.endswith(("endpoint", "_url", "_servers"))]
HUGE = 10**30


def said(setting: Setting, value: Any, folder: Path, source: str) -> list[str]:
    """The lines that refuse the value, given from one of the three sources."""
    tree, top = setting.tree(value), setting.path[0]
    text = json.dumps(tree[top])
    if source == "environment":
        return refused([], {f"SPANWISE_{top.upper()}": text}, [])
    if source == "set":
        return refused([], {}, [f"{top}={text}"])
    file = folder / "spanwise.yaml"
    file.write_text(json.dumps(tree))
    return refused([file], {}, [])


def refused(files: list[Path], environ: dict[str, str], overrides: list[str]) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load(files, environ, overrides)
    return str(raised.value).splitlines()


@for_each("source", ["file", "environment", "set"])
@for_each("name", NUMBERS)
@for_each("value", [True, [False], HUGE, -HUGE])
def test_a_number_is_no_truth_value_and_has_bounds_on_both_sides(
    tmp_path: Path, name: str, value: Any, source: str
) -> None:
    lines = said(SETTINGS[name], value, tmp_path, source)

    assert any(line.startswith(f"{name}: ") for line in lines), lines


@for_each("name", [name for name in NUMBERS if float in SETTINGS[name].kinds])
@for_each("value", ["1e400", ".inf", ".nan"])
def test_a_number_is_finite(name: str, value: str) -> None:
    setting, section = SETTINGS[name], name.rpartition(".")[0]
    beside = [f"{section}.{key}={json.dumps(each)}" for key, each in setting.required.items()]

    lines = refused([], {}, [*beside, f"{name}={value}"])
    assert any(line.startswith(f"{name}: ") for line in lines), lines


@for_each("source", ["file", "environment", "set"])
@for_each("name", TEXTS)
@for_each("text", ["a\0b", "a\ud800b"])
def test_no_text_holds_a_nul_or_half_a_character(
    tmp_path: Path, name: str, text: str, source: str
) -> None:
    setting = SETTINGS[name]
    kind = get_origin(setting.annotation)
    if kind not in (tuple, dict) and len(setting.path) == 1 and source != "file":
        is_environment = source == "environment"
        environ = {f"SPANWISE_{name.upper()}": text} if is_environment else {}
        lines = refused([], environ, [] if is_environment else [f"{name}={text}"])
    else:
        value = [text] if kind is tuple else {"k": text} if kind is dict else text
        lines = said(setting, value, tmp_path, source)

    assert any(line.startswith(name) and "NUL" in line for line in lines), lines
    assert all(line.isprintable() for line in lines)


@for_each("name", ["receiver.tls.cert_file", "receiver.tls.key_file", "sinks.datadog.ca_file"])
def test_a_file_whose_name_is_too_long_is_said_with_its_setting(tmp_path: Path, name: str) -> None:
    lines = said(SETTINGS[name], "x" * 5_000, tmp_path, "file")

    assert any(line.startswith(f"{name}: ") for line in lines), lines


@for_each("name", ADDRESSES)
@for_each(
    "text",
    ["no endpoint", "::::", "http://", "ftp://host/x", "host:999999", "host:0", "[::1:4317", ""],
)
def test_what_is_no_address_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (line,) = said(SETTINGS[name], text, tmp_path, "file")

    assert line.startswith(f"{name}: expected ")


def test_an_endpoint_is_taken_and_a_password_in_an_address_is_not_shown() -> None:
    for text in ("host:4317", "[::1]:4317", "http://host", "https://user:x@h-1.example.org:4317/a"):
        assert TypeAdapter(Endpoint).validate_python(text) == text
    with pytest.raises(ValidationError, match="expected a URL") as raised:
        TypeAdapter(Url).validate_python("http://user:hush@host:99999")

    (error,) = raised.value.errors()
    assert "hush" not in error["msg"]


@for_each(
    ("name", "option"),
    [(each.name, option) for each in Registry.discover([]) for option in each.options],
)
def test_an_option_takes_a_truth_value_only_where_it_is_one(name: str, option: str) -> None:
    (owner, *_) = (each for each in Registry.discover([]).named(name) if option in each.options)
    if not _mentions(owner.annotations[option], (int, float)):
        return

    for value in (True, {"confidence": True}, [True]):
        with pytest.raises(SettingsError, match=rf"^evaluators\.{name}\.{option}: "):
            owner.option(option, value)


@for_each("name", ["agent_reliability", "agent_consistency"])
def test_a_weight_of_an_unknown_signal_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^evaluators\.{name}\.signal_weights: .*mood"):
        plan_from(load([], {}, [f"evaluators.{name}.signal_weights={{mood: 1.0}}"]))


def _mentions(annotation: Any, kinds: tuple[type, ...]) -> bool:
    return annotation in kinds or any(_mentions(part, kinds) for part in get_args(annotation))


def test_the_expectations_are_read_as_strictly_as_the_settings(tmp_path: Path) -> None:
    for name, text, says in (
        ("bomb.yaml", "a: &a [*a]", "cannot be read: .+$"),
        ("twice.yaml", "- {input: a, input: b}", "cannot be read: .+$"),
        ("twice.jsonl", '{"input": "a", "input": "b"}', "cannot be read: .+$"),
        ("deep.jsonl", "[" * 100_000, "cannot be read: .+$"),
        ("bytes.yaml", "\ud800", "cannot be read: .+$"),
        ("one_of_three.jsonl", '{"match": {"turn": 1}}\n\n{oops\n{}\n', ".*: line 3: Expecting"),
    ):
        file = tmp_path / name
        file.write_text(text, errors="surrogatepass")
        with pytest.raises(ConfigError, match=rf"^expectations: {file} {says}"):
            plan_from(load([], {}, [f"expectations={file}"]))

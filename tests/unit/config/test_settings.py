"""Loading settings: where values come from, which one wins, and what is said of each that is wrong."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
import yaml

from collector.base.errors import ConfigError
from collector.commands.config import MASK, effective, schema
from collector.config.load import is_setting, load
from collector.config.tree import Config
from collector.config.values import show_duration
from tests.support.table import for_each

EXAMPLE = Path(__file__).parents[3] / "spanwise.yaml"


def written(folder: Path, text: str, name: str = "user.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def complaints(
    folder: Path, text: str = "", environ: Mapping[str, str] | None = None, *overrides: str
) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load([written(folder, text)], environ or {}, overrides)
    return str(raised.value).splitlines()


# --- the documented example ---


def test_the_example_is_the_defaults_and_names_every_key() -> None:
    example = yaml.safe_load(EXAMPLE.read_text())

    assert load([EXAMPLE], {}, []) == Config() == load([], {}, [])
    assert _paths(example) == _paths(yaml.safe_load(effective(Config())))


def test_the_example_fits_the_schema() -> None:
    described = schema()
    jsonschema.Draft202012Validator.check_schema(described)

    jsonschema.validate(yaml.safe_load(EXAMPLE.read_text()), described)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"windows": {"trace": {"idle": "three"}}}, described)


def _paths(tree: Any, path: str = "") -> set[str]:
    if not isinstance(tree, dict) or not tree:
        return {path}
    children = cast(dict[str, Any], tree).items()
    return {leaf for key, child in children for leaf in _paths(child, f"{path}.{key}")}


# --- which one wins ---


def test_later_files_environment_and_set_win_in_this_order(tmp_path: Path) -> None:
    one = written(tmp_path, "windows: {trace: {idle: 1s, late: 1s, max_age: 1s, root_grace: 1s}}")
    two = written(tmp_path, "windows: {trace: {late: 2s, max_age: 2s, root_grace: 2s}}", "two.yaml")
    environ = {
        "SPANWISE_WINDOWS__TRACE__MAX_AGE": "3s",
        "spanwise_windows__Trace__root_grace": "3s",
    }

    trace = load([one, two], environ, ["windows.trace.root_grace=4s"]).windows.trace

    assert (trace.idle, trace.late, trace.max_age, trace.root_grace) == (1, 2, 3, 4)


def test_a_mapping_given_as_text_merges_a_list_replaces_and_a_null_takes_away(
    tmp_path: Path,
) -> None:
    one = written(tmp_path, "receiver: {http: {paths: [/a, /b]}}")
    environ = {"SPANWISE_ADMIN": "{port: 1}", "SPANWISE_SINKS__JSONL": "null"}

    config = load([one], environ, ["admin={host: '::1'}", "receiver.http.paths=[/c]"])

    assert (config.admin.host, config.admin.port) == ("::1", 1)
    assert config.receiver.http.paths == ("/c",)
    assert config.sinks.jsonl is None


def test_a_key_of_digits_stays_a_text_and_no_value_of_the_environment_is_substituted(
    tmp_path: Path,
) -> None:
    file = written(tmp_path, "embedder: {api_key: ${env:KEY}}\njudge: {model: ${env:MODEL}}")
    secret = "a$$${env:HOME}"
    environ = {"KEY": "0123", "MODEL": "[x]", "SPANWISE_JUDGE__API_KEY": secret, "HOME": "/root"}

    config = load([file], environ, ["log.kafka.instance=7"])

    keys = (config.embedder.api_key, config.judge.api_key)
    assert [each and each.get_secret_value() for each in keys] == ["0123", secret]
    assert (config.judge.model, config.log.kafka.instance) == ("[x]", "7")


@for_each(
    "name",
    [
        *("SPANWISE_GOLDEN", "SPANWISE_LABELLED", "SPANWISE_CAPTURES", "SPANWISE_TEST_KAFKA"),
        *("SPANWISE_TEST_IMAGE_BASE", "SPANWISE_REQUIRE_CHROMIUM", "SPANWISE_KAFKA_LIBS"),
        *("SPANWISE_SERVICE_HOST", "SPANWISE_SERVICE_PORT_GRPC", "SPANWISE_PORT", "PATH"),
        *("SPANWISE_PORT_4317_TCP_ADDR", "SPANWISE_ADMIN_PORT"),
    ],
)
def test_what_is_not_a_setting(name: str) -> None:
    """Variables of our tests, and those that Kubernetes makes for a Service named spanwise."""
    value = "tcp://10.0.0.1:4390" if name.endswith("_PORT") else "x"

    assert not is_setting(name, value)
    assert load([], {name: value}, []) == Config()


# --- references ---


def test_references_are_filled_in(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        admin: {port: ${env:PORT:-4000}, host: ${env:HOST}}
        plugins: [a.py, "${env:HOST}.py"]
        judge: {base_url: "http://${env:HOST}/$${x}", model: ${env:NONE:-}}
        # ${env:COMMENTED}
        """,
    )

    config = load([file], {"HOST": "example.org", "PORT": ""}, [])

    assert (config.admin.port, config.admin.host) == (4000, "example.org")
    assert list(config.plugins) == ["a.py", "example.org.py"]
    assert (config.judge.base_url, config.judge.model) == ("http://example.org/${x}", None)


def test_references_that_cannot_be_filled_in_are_named(tmp_path: Path) -> None:
    text = "judge: {model: ${env:NO_SUCH}, base_url: ${HOME}}"

    assert complaints(tmp_path, text, {"HOME": "/root"}) == [
        (
            "judge.model: the environment variable NO_SUCH is not set; "
            "set it, or give a default: ${env:NO_SUCH:-default}"
        ),
        (
            'judge.base_url: "${HOME}" is not a reference; write ${env:HOME}, '
            "or $${ for the characters themselves"
        ),
    ]


@for_each("idle", ["30", "30s", '"30"', "30000ms", "0.5m"])
def test_a_number_without_a_unit_is_seconds_wherever_it_is(tmp_path: Path, idle: str) -> None:
    path = written(tmp_path, f"windows: {{trace: {{idle: {idle}}}}}")

    for config in (
        load([path], {}, []),
        load([], {"SPANWISE_WINDOWS__TRACE__IDLE": idle}, []),
        load([], {}, [f"windows.trace.idle={idle}"]),
    ):
        assert config.windows.trace.idle == 30
    shown = [show_duration(seconds) for seconds in (30.0, -5.0, 5400.0, 0.25)]
    assert shown == ["30s", "-5s", "90m", "250ms"], "as a user writes it"


@for_each("idle", ["30 seconds", "30sec", "1h30m", "-", "[30]"])
def test_what_is_no_duration_says_what_is(tmp_path: Path, idle: str) -> None:
    (line,) = complaints(tmp_path, "", None, f"windows.trace.idle={idle}")

    assert line.startswith("windows.trace.idle: expected a duration such as 500ms, 5s, 30m or 24h")


# --- what is wrong ---

MISTAKES: list[dict[str, str]] = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "config" / "mistakes.yaml").read_text("utf-8")
)


@for_each("mistake", MISTAKES)
def test_each_error_has_its_path_and_says_what_was_expected(
    tmp_path: Path, mistake: dict[str, str]
) -> None:
    assert complaints(tmp_path, mistake["settings"]) == mistake["says"].splitlines()


def test_every_bad_field_is_listed(tmp_path: Path) -> None:
    environ = {"SPANWISE_ADMIN_PORT": "1", "SPANWISE_JUDGE__ATTEMPTS": "many"}
    text = "windows: {trace: {idle: three}}\nlog: {kind: x}"

    first, *others = complaints(tmp_path, text, environ, "nonsense", "admin.prot=1")

    assert first.startswith("SPANWISE_ADMIN_PORT: ")
    assert first.endswith("did you mean SPANWISE_ADMIN__PORT?")
    assert [line.partition(": ")[0] for line in others] == [
        *("--set nonsense", "admin.prot", "log.kind", "windows.trace.idle", "judge.attempts")
    ]


def test_a_file_that_holds_no_settings_is_one_line(tmp_path: Path) -> None:
    (line,) = complaints(tmp_path, "- a")

    assert "expected a mapping of settings" in line


# --- printing ---


def test_secrets_are_masked_and_an_empty_token_is_refused() -> None:
    given = [
        "judge.api_key=hush",
        "admin.bearer_tokens=[hush]",
        "judge.base_url=http://user:hush@host/v1",
        "sinks.otlp={endpoint: 'http://x', headers: {authorization: hush}}",
        *("receiver.grpc.port=0", "receiver.http.port=0", "admin.port=0"),  # never taken twice
    ]

    printed = effective(load([], {}, given))

    assert ("hush" in printed, printed.count(MASK)) == (False, 4)
    with pytest.raises(ConfigError, match=r"admin\.bearer_tokens"):
        load([], {}, ['admin.bearer_tokens=[""]'])

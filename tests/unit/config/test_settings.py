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

WRONG = {
    "windows: {trace: {idle: three}}": (
        'windows.trace.idle: expected a duration such as 500ms, 5s, 30m or 24h, got "three"'
    ),
    "windows: {memory: much}": (
        'windows.memory: expected a size such as 64KiB, 64MiB or 4GiB, got "much"'
    ),
    "windows: {trace: {rot_grace: 1s}}": (
        'windows.trace.rot_grace: unknown key; did you mean "root_grace"?'
    ),
    "judges: {tone: {rubrik: x, rubric: y}}": (
        'judges.tone.rubrik: unknown key; did you mean "rubric"?'
    ),
    "judges: {tone: {}}": "judges.tone.rubric: required here, but missing",
    "log: {kind: sqlite}": 'log.kind: expected disk, kafka or memory, got "sqlite"',
    "roles: [receive, foo]": (
        'roles[1]: expected receive, assemble, score, judge or publish, got "foo"'
    ),
    "workers: many": 'workers: expected a whole number or auto, got "many"',
    "judge: {sample: 2}": 'judge.sample: expected at most 1, got "2"',
    "judge: {temperature: .inf}": 'judge.temperature: expected a finite number, got "inf"',
    "admin: {port: 70000}": 'admin.port: expected at most 65535, got "70000"',
    "drain_on_stop: perhaps": 'drain_on_stop: expected true or false, got "perhaps"',
    "tasks: 3": 'tasks: expected a mapping, got "3"',
    "roles: receive": 'roles: expected a list such as [a, b], got "receive"',
    "evaluators: {x: {threshold: 4}}": 'evaluators.x.threshold: expected at most 1, got "4"',
    "receiver: {bearer_tokens: hush}": "receiver.bearer_tokens: expected a list such as [a, b]",
    "judge: {api_key: [hush]}": "judge.api_key: expected a text",
    "roles: []": "roles: expected at least one of receive, assemble, score, judge, publish",
    "roles: [judge, judge]": "roles: name each role at most once",
    "receiver: {http: {paths: [v1]}}": (
        'receiver.http.paths: expected paths that begin with /, got "v1"'
    ),
    "log: {kind: kafka}": (
        "log.kafka.bootstrap_servers: required with log.kind kafka, such as broker-1:9092"
    ),
    "receiver: {grpc: {port: 4318}}": (
        "receiver.http.port: 4318 is taken by receiver.grpc.port; "
        "give each listener a port of its own"
    ),
    "admin: {port: 4317, host: 0.0.0.0}": (
        "admin.port: 4317 is taken by receiver.grpc.port; give each listener a port of its own"
    ),
    "expectations: /no/such.yaml": "expectations: no such file: /no/such.yaml",
    "receiver: {tls: {cert_file: /no/a, key_file: /no/b}}": (
        "receiver.tls.cert_file: no such file: /no/a\nreceiver.tls.key_file: no such file: /no/b"
    ),
    "log: {kind: kafka, kafka: {bootstrap_servers: a, security: {protocol: SASL_SSL}}}": "\n".join(
        f"log.kafka.security.{each}: required with protocol SASL_SSL"
        for each in ("sasl_mechanism", "username", "password")
    ),
    "sinks: {kafka: {bootstrap_servers: a, security: {ca_file: /no/c}}}": (
        "sinks.kafka.security.ca_file: no such file: /no/c"
    ),
    "embedder: {kind: litellm}": (
        "embedder.model: required with embedder.kind litellm, such as text-embedding-3-small"
    ),
}


@pytest.mark.parametrize("text", list(WRONG))
def test_each_error_has_its_path_and_says_what_was_expected(tmp_path: Path, text: str) -> None:
    assert complaints(tmp_path, text) == WRONG[text].splitlines()


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

"""Where the tree wants a text, a text that is given is that text, whatever it looks like in YAML."""

from typing import Any, get_args, get_origin

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from collector.base.errors import ConfigError
from collector.config.load import from_environment, from_overrides, load, substitute
from collector.config.tree import Config
from tests.support.examples import USUAL, examples
from tests.support.setting_tree import SAMPLES, Setting, every_setting

TEXTS = [
    each
    for each in every_setting()
    if each.kinds and {str, SecretStr, type(None)} >= each.kinds | {type(None)}
]
NASTY = [
    "#secret", "&Secret1", "abc #1", "abc: d", "{x}", "~", "null", "yes", "0123", "1e400", '"quoted"', "'q'", "a:",
    "*a", "!Secret", "!!str x", "--- x", "%abc", "@abc", "<<", "key: [", "[a, b]", "123_456", "2026-11-25", "=",
    "::", "::1", "a$$b", "${env:HOME}", "a\nb", "a=b", "-", "?", "|", ">", "true", "`x`", "\\", "a,b", "é #", "\t#",
]  # fmt: skip
PLAIN = [
    "judge.api_key",
    "log.kafka.topic_prefix",
    "log.kafka.security.password",
    "admin.host",
    "receiver.grpc.host",
    "receiver.http.host",
]
"""Settings of which every text is taken."""
texts = st.sampled_from(NASTY) | st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1
)


def levels_of(setting: Setting) -> tuple[str, ...]:
    """The path of the text itself: in a mapping, of one of its values."""
    in_mapping = get_origin(setting.annotation) is dict
    return (*setting.path, "k") if in_mapping else setting.path


def is_list(setting: Setting) -> bool:
    """Whether it is a list of texts, which may also be left out."""
    return any(
        get_origin(each) is tuple for each in (setting.annotation, *get_args(setting.annotation))
    )


def leaf(tree: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def value_at(config: Config, name: str) -> str | None:
    value: Any = config
    for step in name.split("."):
        value = getattr(value, step)
    return value.get_secret_value() if isinstance(value, SecretStr) else value


@pytest.mark.parametrize("setting", TEXTS, ids=lambda each: each.name)
@settings(deadline=None, max_examples=examples(USUAL) // 4)
@given(text=texts)
def test_a_text_from_anywhere_is_that_text(setting: Setting, text: str) -> None:
    path = levels_of(setting)
    expected = text.strip() or None
    if not is_list(setting):
        variable = "SPANWISE_" + "__".join(path).upper()
        assert leaf(from_environment({variable: text}), path) == expected
        tree, wrong = from_overrides([f"{'.'.join(path)}={text}"])
        assert (leaf(tree, path), wrong) == (expected, [])
        tree: Any = "${env:T}"
    else:
        path = (*path, 0)
        tree = ["${env:T}"]
    for step in reversed(levels_of(setting)):
        tree = {step: tree}
    filled, wrong = substitute(tree, {"T": text})
    assert (leaf(filled, path), wrong) == (expected, [])


@pytest.mark.parametrize("name", PLAIN)
@settings(deadline=None, max_examples=examples(USUAL) // 4)
@given(text=texts)
@example("::")
def test_what_is_given_is_what_is_used(name: str, text: str) -> None:
    expected = text.strip()
    if not expected:
        return
    variable = "SPANWISE_" + name.replace(".", "__").upper()
    for environ, overrides in (({variable: text}, []), ({}, [f"{name}={text}"])):
        assert value_at(load([], environ, overrides), name) == expected


def test_an_empty_one_is_null_and_never_an_empty_host() -> None:
    assert load([], {"SPANWISE_JUDGE__API_KEY": " "}, []).judge.api_key is None
    with pytest.raises(ConfigError, match=r"admin\.host: expected a text"):
        load([], {"SPANWISE_ADMIN__HOST": ""}, [])


def test_every_section_has_texts() -> None:
    """Else nothing above is shown."""
    assert len(TEXTS) > 20
    assert {"forward.headers", "receiver.bearer_tokens", "redaction.key"} <= {
        each.name for each in TEXTS
    }
    assert SAMPLES

"""The conventions under scopes with names of their own: Semantic Kernel, Microsoft.Extensions.AI, AgentCore."""

from tests.support.conventions import tool
from tests.support.dialect_spans import trace_of
from tests.support.table import for_each
from tests.support.weather import (
    one_call,
)


@for_each(
    "scope,name,plain",
    [
        ("Microsoft.SemanticKernel", "WeatherPlugin_get_weather", "get_weather"),
        ("", "SearchPlugin-look-up", "SearchPlugin-look-up"),
    ],
)
def test_a_plugins_name_is_lost_in_dotnet_too_but_not_in_another_framework(
    scope: str, name: str, plain: str
) -> None:
    assert one_call(trace_of({}, tool(name), scope=scope)).name == plain

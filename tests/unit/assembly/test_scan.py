"""Whose trace a piece belongs to, before it is read."""

import pytest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from collector.assembly.scan import CACHED_RESOURCE, MAX_NAME, MAX_RESOURCE, service_of
from collector.otlp.scan import scan
from tests.support.spans import Made, request, trace_id


def named(service: str, *, noise: int = 0) -> bytes:
    resource = Resource()
    resource.attributes.add(key="noise").value.string_value = "n" * noise
    resource.attributes.add(key="service.name").value.string_value = service
    return resource.SerializeToString()


def test_the_resource_of_its_first_span_names_a_traces_service() -> None:
    made = [Made(span=1, service="shop"), Made(span=2, service="desk"), Made(trace=2, span=3)]

    held = scan(request(*made))

    assert service_of(held.resources[trace_id(1)]) == "shop"
    assert service_of(held.resources[trace_id(2)]) == "shop"


def test_a_resource_may_come_in_parts() -> None:
    assert service_of([Resource().SerializeToString(), named("shop")]) == "shop"


def test_a_long_name_is_cut_as_where_a_trace_is_read() -> None:
    assert service_of([named("x" * 1000)]) == "x" * MAX_NAME


def test_a_large_resource_is_not_remembered_and_a_huge_one_not_decoded() -> None:
    assert service_of([named("shop", noise=CACHED_RESOURCE)]) == "shop"
    assert service_of([named("shop", noise=MAX_RESOURCE)]) == ""


@pytest.mark.parametrize("resource", [(), (b"",), (b"\xff\xff",)])
def test_a_resource_without_a_name_has_none(resource: tuple[bytes, ...]) -> None:
    assert service_of(resource) == ""

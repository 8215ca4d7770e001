"""Rights on a Kafka cluster that are missing, each as Kafka's tools name it: `Write on topic spanwise.signals`."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.client import CoordinationType
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    TopicAuthorizationFailedError,
)
from aiokafka.protocol.admin import DescribeGroupsResponse_v3
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

from collector.log.kafka.client import network_client

READ, WRITE = "Read", "Write"
_BITS = {READ: 3, WRITE: 4}
"""Of the operations in an answer: org.apache.kafka.common.acl.AclOperation's numbers."""
_NOT_SAID = -(2**31)  # the bits of a broker that does not say what is allowed
_NOT_READY = frozenset({14, 15, 16})
"""A group's coordinator loads its groups, is not there yet, or is another one now: it says nothing of rights."""
_NO_SUCH_TOPIC = 3
_DENIED = {29, 30, 31}
"""Error codes: not authorized for the topic, the group, the cluster."""


class Right(NamedTuple):
    """A right, as Kafka's tools name it: an operation on a topic or on a group."""

    operation: str
    kind: str  # `topic` or `group`
    name: str


def failure(error: BaseException, operation: str) -> str:
    """What a request to Kafka failed of; `operation` is what it does to topics."""
    match error:
        case TopicAuthorizationFailedError():
            return _refused(operation, "topic", error.args)
        case GroupAuthorizationFailedError():
            return _refused(READ, "group", error.args)
        case ClusterAuthorizationFailedError():
            return (
                "Kafka refuses us a right: Write on our topics, or IdempotentWrite on the cluster"
            )
        case _:
            return f"Kafka: {error!r}"


def _refused(operation: str, kind: str, names: Iterable[Any]) -> str:
    each = [name if isinstance(name, str) else ", ".join(sorted(name)) for name in names]
    return f"Kafka refuses us a right: {operation} on {kind} {', '.join(each) or 'of ours'}"


def lacking(missing: Sequence[Right], section: str) -> str | None:
    """A line for the operator; None: no right is missing."""
    if not missing:
        return None
    names: dict[tuple[str, str], list[str]] = {}
    for right in missing:
        names.setdefault((right.operation, right.kind), []).append(right.name)
    each = [
        f"{operation} on {kind}{'s' * (len(named) > 1)} {', '.join(named)}"
        for (operation, kind), named in names.items()
    ]
    return f"{section}: the user lacks rights on the cluster: {'; '.join(each)}"


async def missing_rights(
    admin: AIOKafkaAdminClient,
    *,
    topics: Sequence[str],
    operations: Sequence[str],
    groups: Sequence[str] = (),
    create: Sequence[NewTopic] = (),
) -> list[Right]:
    """Those of these rights that our user lacks: on the topics, Read on the groups, Create of the new topics.

    Nothing is changed; the caller bounds the time. Where a broker cannot say what is allowed, nothing is missing.
    """
    try:
        missing = await _on_topics(admin, topics, operations)
    except NotImplementedError:
        return []  # aiokafka's: the broker is older than these requests, as before Kafka 2.3
    missing += [Right(READ, "group", each) for each in groups if not await _may_join(admin, each)]
    if create:
        answer = await admin.create_topics(list(create), validate_only=True)
        missing += [
            Right("Create", "topic", name)
            for name, code, _ in sorted(answer.topic_errors)
            if code in _DENIED
        ]
    return missing


async def _on_topics(
    admin: AIOKafkaAdminClient, topics: Sequence[str], operations: Sequence[str]
) -> list[Right]:
    client = network_client(admin)
    answer: Any = await client.send(client.get_random_node(), _Operations(topics))
    found = {name: (code, allowed) for code, name, _, _, allowed in answer.topics}
    return [
        Right(each, "topic", topic)
        for each in operations
        for topic in topics
        if not _is_allowed(each, *found[topic])
    ]


async def _may_join(admin: AIOKafkaAdminClient, group: str) -> bool:
    client = network_client(admin)
    while True:
        try:
            coordinator = await client.coordinator_lookup(CoordinationType.GROUP, group)
        except GroupAuthorizationFailedError:
            return False
        except GroupCoordinatorNotAvailableError:  # the cluster's first group: it is being made
            await asyncio.sleep(0.1)
            continue
        answer: Any = await client.send(coordinator, _Groups(group))
        if any(each[0] in _NOT_READY for each in answer.groups):
            await asyncio.sleep(0.1)
            continue
        return all(_is_allowed(READ, each[0], each[-1]) for each in answer.groups)


def _is_allowed(operation: str, code: int, allowed: int) -> bool:
    """By the answer's error code and bits; a topic that does not exist yet has no bits."""
    if code in _DENIED:
        return False
    return code == _NO_SUCH_TOPIC or allowed == _NOT_SAID or bool(allowed >> _BITS[operation] & 1)


class _OperationsResponse(Response):
    """Metadata v8 (KIP-430): the first one that has the operations allowed; aiokafka knows up to v5."""

    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            Array(
                ("node_id", Int32),
                ("host", String("utf-8")),
                ("port", Int32),
                ("rack", String("utf-8")),
            ),
        ),
        ("cluster_id", String("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", String("utf-8")),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", Array(Int32)),
                        ("isr", Array(Int32)),
                        ("offline_replicas", Array(Int32)),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
        ("authorized_operations", Int32),
    )


class _OperationsRequest(RequestStruct):
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = _OperationsResponse
    SCHEMA = Schema(
        ("topics", Array(String("utf-8"))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
    )


class _Operations(Request[_OperationsRequest]):
    API_KEY = 3

    def __init__(self, topics: Sequence[str]) -> None:
        self._topics = list(topics)

    def build(self, request_struct_class: type[_OperationsRequest]) -> _OperationsRequest:
        return request_struct_class(self._topics, False, False, True)


class _GroupsRequest(RequestStruct):
    """aiokafka's own of this version reads the answer as the version before."""

    API_KEY = 15
    API_VERSION = 3
    RESPONSE_TYPE = DescribeGroupsResponse_v3
    SCHEMA = Schema(("groups", Array(String("utf-8"))), ("include_authorized_operations", Boolean))


class _Groups(Request[_GroupsRequest]):
    API_KEY = 15

    def __init__(self, group: str) -> None:
        self._group = group

    def build(self, request_struct_class: type[_GroupsRequest]) -> _GroupsRequest:
        return request_struct_class([self._group], True)

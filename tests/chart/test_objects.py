"""Names, labels, annotations, services and the policy of the network of every rendering."""

import pytest
import yaml

from scripts.chart.examples import NAMESPACE, Manifest, manifests, names, rendered, values_of
from tests.chart.support import (
    DATA,
    MODES,
    leaves,
    named,
    of_kind,
    one,
    pods,
    refusal,
    render,
    services,
)

LONGEST = "r" * 53
"""Helm takes no longer name of a release."""
ALL_ON = """
networkPolicy: {enabled: true}
prometheusRule: {enabled: true}
dashboard: {enabled: true, grafanaOperator: {enabled: true}}
podMonitor: {enabled: true}
commonAnnotations: {owner: agents}
commonLabels: {team: agents}
"""


def metadata(found: list[Manifest]) -> list[Manifest]:
    """The metadata of every object, and of the pods that the objects make."""
    made = [
        each["spec"]["template"]["metadata"] for each in found if "template" in each.get("spec", {})
    ]
    return [*(each["metadata"] for each in found), *made]


@pytest.mark.parametrize("example", names())
def test_names_and_labels_keep_to_63_characters_with_the_longest_release(example: str) -> None:
    found = manifests(rendered(values_of(example), release=LONGEST))

    assert [named(each) for each in found if len(each["metadata"]["name"]) > 63] == []
    objects = [each for each in found if each["kind"] != "PrometheusRule"]
    for path, value in (pair for each in objects for pair in leaves(each)):
        if ".labels." in path or ".matchLabels." in path:
            assert len(value) <= 63, path
    for name, pod in pods(found).items():
        assert max(len(each["name"]) for each in pod["volumes"]) <= 63, name
    for each in of_kind(found, "StatefulSet"):
        # The label controller-revision-hash is the name and eleven characters.
        assert len(each["metadata"]["name"]) <= 52


def test_two_long_releases_that_begin_alike_have_names_of_their_own() -> None:
    first, second = (render(release=LONGEST[:-1] + each) for each in "ab")

    assert not {named(each) for each in first} & {named(each) for each in second}


@pytest.mark.parametrize("mode", MODES)
def test_annotations_and_labels_of_all_stand_everywhere(mode: str) -> None:
    found = render(MODES[mode] + ALL_ON)

    assert len(found) > 5
    for each in metadata(found):
        assert each["annotations"]["owner"] == "agents"
        assert each["labels"]["team"] == "agents"
        assert each["labels"]["app.kubernetes.io/instance"] == "agents"


@pytest.mark.parametrize("mode", MODES)
def test_a_selector_holds_what_never_changes(mode: str) -> None:
    found = render(MODES[mode] + "commonLabels: {team: agents}\npodLabels: {tier: a}")

    for each in found:
        if each["kind"] in {"Deployment", "StatefulSet"}:
            assert set(each["spec"]["selector"]["matchLabels"]) == {
                "app.kubernetes.io/name",
                "app.kubernetes.io/instance",
                "app.kubernetes.io/component",
            }


@pytest.mark.parametrize("mode", ["standalone", "scaled"])
def test_every_service_finds_pods_and_their_ports(mode: str) -> None:
    found = render(MODES[mode])
    made = [each for each in found if each["kind"] in {"Deployment", "StatefulSet"}]

    for service in of_kind(found, "Service"):
        behind = [
            each
            for each in made
            if service["spec"]["selector"].items()
            <= each["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert len(behind) == 1, named(service)
        ports = {each["name"] for each in services(behind)[named(behind[0])]["ports"]}
        assert {each["targetPort"] for each in service["spec"]["ports"]} <= ports
    for each in of_kind(found, "StatefulSet"):
        assert one(found, "Service", each["spec"]["serviceName"])["spec"]["clusterIP"] == "None"


def test_an_object_of_the_user_is_taken_as_it_is_with_templates_filled_in() -> None:
    found = render(
        "extraManifests:\n"
        "  - {apiVersion: v1, kind: Secret, metadata: {name: '{{ .Release.Name }}-own'}}\n"
        "  - |\n"
        "    apiVersion: v1\n"
        "    kind: ConfigMap\n"
        "    metadata: {name: text}\n"
    )

    assert one(found, "Secret")["metadata"]["name"] == "agents-own"
    assert one(found, "ConfigMap", "text")


def test_namespace_and_name_can_be_others() -> None:
    assert one(render("fullnameOverride: scores"), "StatefulSet")["metadata"]["name"] == "scores"
    assert "/fullnameOverride" in refusal("fullnameOverride: Scores!")
    found = render("namespaceOverride: elsewhere")

    assert {each["metadata"]["namespace"] for each in found} == {"elsewhere"}
    assert {each["metadata"]["namespace"] for each in render()} == {NAMESPACE}


# --- the network ---------------------------------------------------------------------------------------------

POLICY = {"kubernetes": "NetworkPolicy", "cilium": "CiliumNetworkPolicy"}
JUDGE = "judge: {model: openai/gpt-4o-mini}"
FORWARD = "forward: {endpoint: 'http://tempo:4317'}"


def policy(config: str = "", more: str = "", *, flavor: str = "kubernetes") -> Manifest:
    """The spec of the policy, with these settings and these values of `networkPolicy`."""
    values = f"networkPolicy: {{enabled: true, flavor: {flavor}, {more}}}\nconfig: {{{config}}}"
    return one(render(values), POLICY[flavor])["spec"]


def ports(rules: list[Manifest]) -> list[int]:
    """Those that rules name, of either kind of policy."""
    named = [rule for each in rules for rule in each.get("toPorts", [each])]
    return sorted({int(port["port"]) for each in named for port in each["ports"]})


def test_the_policy_lets_out_what_is_needed_and_nothing_else() -> None:
    alone = policy()

    assert alone["policyTypes"] == ["Ingress", "Egress"]
    assert ports(alone["ingress"]) == [4317, 4318, 4390]
    assert ports(alone["egress"]) == [53]
    assert ports(policy(JUDGE)["egress"]) == [53, 443]


def test_the_policy_names_the_judge_by_address_and_ciliums_by_host() -> None:
    by_address = policy(JUDGE, "egress: {judge: {to: [{ipBlock: {cidr: 203.0.113.0/24}}]}}")
    by_host = policy(JUDGE, "egress: {judge: {hosts: [api.openai.com]}}", flavor="cilium")

    assert by_address["egress"][-1]["to"] == [{"ipBlock": {"cidr": "203.0.113.0/24"}}]
    assert by_host["egress"][-1]["toFQDNs"] == [{"matchName": "api.openai.com"}]


ENDPOINTS: dict[str, int] = yaml.safe_load((DATA / "endpoints.yaml").read_text())


@pytest.mark.parametrize("flavor", ["kubernetes", "cilium"])
@pytest.mark.parametrize(("config", "port"), ENDPOINTS.items())
def test_the_policy_lets_out_to_every_endpoint_of_the_configuration(
    flavor: str, config: str, port: int
) -> None:
    """It was closed to all but the judge: signals and notices waited until they were lost."""
    rules = policy(config, "egress: {judge: {hosts: [api.example.com]}}", flavor=flavor)

    assert port in ports(rules["egress"])


def test_the_policy_may_name_where_endpoints_are_and_loopback_needs_no_rule() -> None:
    named = policy(FORWARD, "egress: {endpoints: {to: [{namespaceSelector: {}}]}}")
    beside = policy("sinks: {otlp: {endpoint: 'http://127.0.0.1:4317'}}")
    left_out = policy(FORWARD, "egress: {endpoints: {enabled: false}}")

    assert named["egress"][-1]["to"] == [{"namespaceSelector": {}}]
    assert ports(beside["egress"]) == ports(left_out["egress"]) == [53]


def test_the_policy_lets_in_who_is_named() -> None:
    own = policy(more="ingress: {otlp: [{podSelector: {matchLabels: {agent: a}}}]}")

    spans, page = own["ingress"]
    assert spans["from"][0] == {"podSelector": {"matchLabels": {"agent": "a"}}}
    assert "from" not in page

"""compose.yaml: what it says is valid and there, and its services work together as processes.

The demo, its Prometheus and the alert run in test_demo.py, with the same files.
"""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from collector.config.load import load
from collector.slo.rules import PAGE
from tests.support import promtool
from tests.support.agents import Turn, request, spans
from tests.support.compose import composed, environment, schema, services
from tests.support.kafka.topics import create_topic, read_topic
from tests.support.sender import send
from tests.support.service import ROOT, Service

SERVICES = services()
OURS = {name: each for name, each in SERVICES.items() if "build" in each}
PROMETHEUS = ROOT / "compose" / "prometheus" / "prometheus.yml"
PROVISIONING = ROOT / "compose" / "grafana" / "provisioning"
TOPIC = "spanwise.signals"

pytestmark = [pytest.mark.e2e]


def mounts(service: Mapping[str, Any]) -> dict[str, str]:
    """Target by source."""
    return dict(each.split(":")[:2] for each in service.get("volumes", ()))


def test_it_keeps_to_the_specification() -> None:
    jsonschema.validate(composed(), schema())


def test_every_file_that_it_mounts_is_there_and_only_read() -> None:
    named = set(composed()["volumes"])
    for name, each in SERVICES.items():
        for source in set(mounts(each)) - named:
            assert source.startswith("./"), (name, source)
            assert (ROOT / source).exists(), (name, source)
        assert not [v for v in each.get("volumes", ()) if v[0] == "." and not v.endswith(":ro")]


def test_images_are_exact_and_our_containers_may_do_nothing_that_they_need_not() -> None:
    for name, each in SERVICES.items():
        if name not in OURS:
            assert re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+", each["image"]), name
            continue
        assert each["image"] == "spanwise:local"
        assert each["read_only"] is True, name
        assert each["tmpfs"] == ["/tmp"], name
        assert each["cap_drop"] == ["ALL"], name
        assert each["security_opt"] == ["no-new-privileges:true"], name


def test_ports_are_on_loopback_and_who_is_waited_for_can_be_healthy() -> None:
    ports = [port for each in SERVICES.values() for port in each.get("ports", ())]
    assert ports
    assert not [each for each in ports if not each.startswith("127.0.0.1:")]
    for name, each in SERVICES.items():
        for other, on in each.get("depends_on", {}).items():
            assert other in SERVICES, name
            if on["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other] or other in OURS, name


@pytest.mark.parametrize("name", sorted(OURS))
def test_the_settings_of_each_of_ours_are_accepted(name: str) -> None:
    config = load([], environment(OURS[name]), [])

    assert config.data_dir == Path("/data")
    assert config.admin.host == "0.0.0.0"
    assert config.admin.port == 4390


def test_prometheus_accepts_its_configuration_with_the_rules(tmp_path: Path) -> None:
    for source, target in mounts(SERVICES["prometheus"]).items():
        if target.startswith("/etc/prometheus/"):
            shutil.copy(ROOT / source, tmp_path / Path(target).name)

    checked = promtool.run("check", "config", "prometheus.yml", folder=tmp_path)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert re.search(r"[1-9]\d* rules found", checked.stdout)


def test_prometheus_scrapes_every_service_of_ours() -> None:
    (job,) = yaml.safe_load(PROMETHEUS.read_text())["scrape_configs"]
    (found,) = job["dns_sd_configs"]

    assert (sorted(found["names"]), found["port"]) == (sorted(OURS), 4390)


def provisioned(kind: str) -> Any:
    """The only one of its kind that Grafana is set up with."""
    (found,) = yaml.safe_load((PROVISIONING / kind / "spanwise.yaml").read_text())[
        "providers" if kind == "dashboards" else kind
    ]
    return found


def test_grafana_has_the_dashboard_and_its_source() -> None:
    source, provider = provisioned("datasources"), provisioned("dashboards")
    mounted = mounts(SERVICES["grafana"])

    assert (source["url"], source["type"]) == ("http://prometheus:9090", "prometheus")
    assert source["isDefault"] is True
    assert "uid" not in source, "the dashboard's variable finds it"
    assert mounted["./compose/grafana/provisioning"] == "/etc/grafana/provisioning"
    assert (provider["type"], provider["allowUiUpdates"]) == ("file", False)
    (dashboard,) = (file for file in mounted if file.endswith(".json"))
    assert str(Path(mounted[dashboard]).parent) == provider["options"]["path"]
    assert json.loads((ROOT / dashboard).read_text())["panels"]


def test_a_point_leads_to_its_trace_on_a_page_that_compose_publishes() -> None:
    """Grafana takes `$name` and `${name}` of the file for environment variables: a literal `$` stands there twice."""
    destinations = provisioned("datasources")["jsonData"]["exemplarTraceIdDestinations"]

    assert {each["name"] for each in destinations} == {"trace_id"}
    pages = [each["url"].replace("$$", "$") for each in destinations]
    published = {
        f"http://{port.removesuffix(':4390')}/trace?id=${{__value.raw}}"
        for name in OURS
        for port in SERVICES[name].get("ports", ())
        if port.endswith(":4390")
    }
    assert set(pages) == published
    assert pages[0].startswith(PAGE)


def test_the_commands_of_the_docs_fit() -> None:
    page = (ROOT / "docs" / "alerting.md").read_text()
    dashboard = json.loads((ROOT / "helm/spanwise/files/dashboard.json").read_text())

    (started,) = re.findall(
        r"^docker compose --profile (\w+) up .*--wait ([a-z ]+?) +#", page, re.MULTILINE
    )
    (waits_for,) = re.findall(
        r"^docker compose logs .* (\w+) \| grep .*\"(.+)\"", page, re.MULTILINE
    )
    profile, names = started[0], started[1].split()

    assert [SERVICES[each].get("profiles") for each in names] == [[profile], None]
    assert waits_for == ("demo", "AgentFault fires")
    story = (ROOT / "collector/commands/demo_story.py").read_text()
    assert "AgentFault fires" in story
    assert f"http://127.0.0.1:3000/d/{dashboard['uid']}" in page


@pytest.mark.kafka
@pytest.mark.timeout(300)
async def test_a_score_reaches_the_broker(kafka: str, tmp_path: Path) -> None:
    """`spanwise` with its variables; `kafka:9092` is the broker of the tests, the topic is made as `topics` does."""
    command = SERVICES["topics"]["command"]
    partitions = int(re.findall(r"--partitions (\d+)", command)[0])
    assert f"--topic {TOPIC} " in command
    topic = f"{TOPIC}.compose"
    await create_topic(kafka, topic, partitions=partitions)
    given = {
        name: kafka if value == "kafka:9092" else value.replace("0.0.0.0", "127.0.0.1")
        for name, value in environment(OURS["spanwise"]).items()
    }
    assert kafka in given.values()

    with Service(
        tmp_path / "data",
        f"sinks.kafka.topic={topic}",
        "windows.trace.root_grace=1s",
        environment=given,
    ) as running:
        send(running.grpc, request("shop", spans(Turn(service="shop", session="s-1", number=0))))
        running.wait_for("a score", lambda: "scored" in "".join(running.signal_lines()))
        name = 'spanwise_signals_total{result="acked",sink="kafka"}'
        running.wait_for("the broker has it", lambda: running.metrics().get(name))

    found = [json.loads(each.value or b"") for each in await read_topic(kafka, topic)]
    assert {each["service"] for each in found} == {"shop"}

"""Values that are refused, each with the words that its user reads."""

import pytest

from tests.chart.support import KAFKA, SCALED, refusal

REFUSED: dict[str, tuple[str, str]] = {
    # a key that does not exist, by name, at every depth
    "unknown key": ("replicaCount: 2", "additional properties 'replicaCount' not allowed"),
    "unknown key of the image": (
        "image: {name: x}",
        "at '/image': additional properties 'name' not",
    ),
    "unknown key of a group": (
        SCALED + "scaled: {score: {replica: 2}}",
        "at '/scaled/score': additional properties 'replica' not allowed",
    ),
    "unknown key four levels down": (
        SCALED + "scaled: {judge: {autoscaling: {keda: {lag: 1}}}}",
        "at '/scaled/judge/autoscaling/keda': additional properties 'lag' not allowed",
    ),
    "unknown key of an override": (
        "standalone: {overrides: {resource: {}}}",
        "at '/standalone/overrides': additional properties 'resource' not allowed",
    ),
    "unknown setting of spanwise.yaml": (
        "config: {windows: {trace: {idel: 30}}}",
        "at '/config/windows/trace': additional properties 'idel' not allowed",
    ),
    "unknown section of spanwise.yaml": (
        "config: {reciever: {}}",
        "at '/config': additional properties 'reciever' not allowed",
    ),
    "role group that does not exist": (
        SCALED + "scaled: {publisher: {}}",
        "at '/scaled': additional properties 'publisher' not allowed",
    ),
    # how many there are
    "standalone twice": ("standalone: {replicas: 2}", "at '/standalone/replicas': "),
    "publish twice": (
        SCALED + "scaled: {publish: {replicas: 2}}",
        "at '/scaled/publish/replicas': ",
    ),
    "publish scaled": (
        SCALED + "scaled: {publish: {autoscaling: {hpa: {enabled: true}}}}",
        "at '/scaled/publish': additional properties 'autoscaling' not allowed",
    ),
    "publish among roles that scale": (
        SCALED + "scaled: {score: {roles: [score, publish]}}",
        "at '/scaled/score/roles/1': value must be one of 'receive', 'assemble', 'score', 'judge'",
    ),
    "receivers by KEDA": (
        SCALED + "scaled: {receive: {autoscaling: {keda: {enabled: true}}}}",
        "at '/scaled/receive/autoscaling': additional properties 'keda' not allowed",
    ),
    "HPA and KEDA": (
        SCALED + "scaled: {score: {autoscaling: {hpa: {enabled: true}, keda: {enabled: true}}}}",
        "at '/scaled/score/autoscaling/keda/enabled': value must be false",
    ),
    "more replicas than partitions": (
        SCALED + "scaled: {score: {replicas: 13}}",
        "scaled.score.replicas: 13 is more than config.log.kafka.partitions (12)",
    ),
    "more by KEDA than partitions": (
        SCALED + "scaled: {judge: {autoscaling: {keda: {enabled: true, maxReplicaCount: 20}}}}",
        "scaled.judge.autoscaling.keda.maxReplicaCount: 20 is more than",
    ),
    # the mode and its log
    "mode that does not exist": (
        "mode: daemonset",
        "at '/mode': value must be one of 'standalone', 'scaled', 'sidecar'",
    ),
    "scaled without Kafka": ("mode: scaled", "missing propert"),
    "scaled without servers": (
        "mode: scaled\nconfig: {log: {kafka: {partitions: 24}}}",
        "at '/config/log/kafka': missing property 'bootstrap_servers'",
    ),
    "scaled on a disk": (
        "mode: scaled\nconfig: {log: {kind: disk, kafka: {bootstrap_servers: 'kafka:9092'}}}",
        "at '/config/log/kind': value must be 'kafka'",
    ),
    "standalone on Kafka": (
        "config: {log: {kind: kafka, kafka: {bootstrap_servers: 'kafka:9092'}}}",
        "at '/config/log/kind': value must be one of 'disk', 'memory'",
    ),
    # secrets
    "key of the judge as text": (
        "config: {judge: {api_key: sk-1234567890}}",
        "at '/config/judge/api_key'",
    ),
    "password of Kafka as text": (
        "mode: scaled\nconfig: {log: {kafka: {bootstrap_servers: 'k:9092', security: {password: hunter2}}}}",
        "at '/config/log/kafka/security/password'",
    ),
    "tokens in the settings": (
        "config: {receiver: {bearer_tokens: [secret-token]}}",
        "at '/config/receiver': additional properties 'bearer_tokens' not allowed",
    ),
    "secret as text": (
        "secrets: {judgeApiKey: {value: sk-123}}",
        "at '/secrets/judgeApiKey': additional properties 'value' not allowed",
    ),
    # what the chart sets itself
    "roles in the settings": (
        "config: {roles: [receive]}",
        "additional properties 'roles' not allowed",
    ),
    "port in the settings": (
        "config: {receiver: {http: {port: 80}}}",
        "at '/config/receiver/http': additional properties 'port' not allowed",
    ),
    # values of the wrong kind
    "port above 65535": (
        "ports: {grpc: 70000}",
        "at '/ports/grpc': maximum: got 70,000, want 65,535",
    ),
    "tag as a number": ("image: {tag: 1}", "at '/image/tag': got number, want string"),
    "digest cut short": (
        "image: {digest: 'sha256:12'}",
        "at '/image/digest': 'sha256:12' does not match",
    ),
    "size without a unit that exists": (
        "standalone: {persistence: {size: 10GB}}",
        "at '/standalone/persistence/size': '10GB' does not match pattern",
    ),
    "alert that does not exist": (
        "prometheusRule: {disabled: {AgentDrop: true}}",
        "invalid propertyName 'AgentDrop'",
    ),
    "privileges": (
        "securityContext: {allowPrivilegeEscalation: true}",
        "at '/securityContext/allowPrivilegeEscalation': value must be false",
    ),
    "grace shorter than a stop": (
        "terminationGracePeriodSeconds: 30",
        "at '/terminationGracePeriodSeconds': minimum: got 30, want 45",
    ),
    "grace without room for the wait": (
        "terminationGracePeriodSeconds: 60\npreStopSeconds: 30",
        "terminationGracePeriodSeconds: 60 is less than preStopSeconds (30), config.receiver.stop_delay",
    ),
    # what does not go together
    "HPA without a request": (
        SCALED + "scaled: {score: {autoscaling: {hpa: {enabled: true}}}}",
        "scaled.score.autoscaling.hpa: needs resources.requests.cpu",
    ),
    "password for a Kafka that asks for none": (
        SCALED + "secrets: {kafka: {existingSecret: kafka}}",
        "secrets.kafka.existingSecret: needs config.log.kafka.security.protocol SASL_SSL or",
    ),
    "headers without a backend": (
        "secrets: {forwardHeaders: {existingSecret: s, headers: {authorization: a}}}",
        "secrets.forwardHeaders: there is no config.forward",
    ),
    "a share above all": (
        "config: {forward: {endpoint: 'https://a:4317', keep: {share: 1.1}}}",
        "at '/config/forward/keep/share'",
    ),
    "rules without a backend": (
        "config: {forward: {keep: {share: 0.1}}}",
        "missing property 'endpoint'",
    ),
    "two monitors": (
        "serviceMonitor: {enabled: true}\npodMonitor: {enabled: true}",
        "at '/serviceMonitor/enabled': value must be false",
    ),
    "page without a token": (
        "ingress: {enabled: true, hosts: [spanwise.example.com]}",
        "secrets.adminTokens.existingSecret: required with ingress or httpRoute",
    ),
    "route without a gateway": (
        "httpRoute: {enabled: true}\nsecrets: {adminTokens: {existingSecret: admin}}",
        "at '/httpRoute/parentRefs': minItems: got 0, want 1",
    ),
    "ingress of a sidecar": (
        "mode: sidecar\ningress: {enabled: true, hosts: [a.example.com]}",
        "at '/ingress/enabled': value must be false",
    ),
}


@pytest.mark.parametrize(("values", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused_with_the_place_and_the_reason(values: str, reason: str) -> None:
    assert reason in refusal(values)


@pytest.mark.parametrize(
    "values",
    [
        "config: {judge: {api_key: sk-1234567890}}",
        "config: {judge: {api_key: '${env:KEY:-sk-1234567890}'}}",
        "config: {redaction: {key: sk-1234567890}}",
        "config: {forward: {endpoint: 'https://a:4317', headers: {authorization: sk-1234567890}}}",
        KAFKA.replace("'kafka:9092'", "'k:9092', security: {password: sk-1234567890}"),
    ],
)
def test_a_secret_as_text_is_refused_and_does_not_stand_in_the_refusal(values: str) -> None:
    reason = refusal(values)

    assert "value must be '${env:NAME}'" in reason
    assert "sk-1234567890" not in reason


@pytest.mark.parametrize("values", ["", SCALED, KAFKA, "mode: sidecar"])
def test_accepted(values: str) -> None:
    assert not refusal(values)


@pytest.mark.parametrize(
    "values",
    [
        "global: {imageRegistry: mirror}\nenabled: true",
        "standalone: {replicas: 0}",
        "config: {judge: {model: openai/gpt-4o, api_key: '${env:OPENAI_API_KEY}'}}",
        "config: {workers: auto, windows: {trace: {idle: 30}}}",
        "podSecurityContext: {runAsUser: null, fsGroup: null}",
    ],
)
def test_what_users_write_is_accepted(values: str) -> None:
    assert not refusal(values)

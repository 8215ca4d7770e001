"""Values that are refused, each with the words that its user reads."""

from tests.chart.support import KAFKA, SCALED, refusal
from tests.support.table import for_each

TOKENS = "secrets: {adminTokens: {existingSecret: admin}}"
SASL = SCALED.replace(
    "'kafka:9092'", "'kafka:9093', security: {protocol: SASL_SSL, sasl_mechanism: PLAIN}"
)
UNKNOWN = [
    ("replicaCount: 2", "", "replicaCount"),
    ("config: {windows: {trace: {idel: 30}}}", "/config/windows/trace", "idel"),
    *(
        (f"{SCALED}scaled: {{{role}: {{autoscaling: {{{kind}: {{enabled: true}}}}}}}}", place, key)
        for role, kind, place, key in (
            ("publish", "hpa", "/scaled/publish", "autoscaling"),
            ("receive", "keda", "/scaled/receive/autoscaling", "keda"),
        )
    ),
    ("config: {receiver: {bearer_tokens: [secret-token]}}", "/config/receiver", "bearer_tokens"),
    ("secrets: {judgeApiKey: {value: sk-123}}", "/secrets/judgeApiKey", "value"),
    ("config: {roles: [receive]}", "/config", "roles"),
    ("config: {receiver: {http: {port: 80}}}", "/config/receiver/http", "port"),
]
"""A key that does not exist, its place and its name: `test_values.py` finds every object closed. And what the chart
leaves out: scaling of what cannot be scaled so, and settings that it sets itself."""
REFUSED = [
    *(
        (values, f"at '{place}': additional properties '{key}' not allowed")
        for values, place, key in UNKNOWN
    ),
    # how many there are
    ("standalone: {replicas: 2}", "at '/standalone/replicas': "),
    (SCALED + "scaled: {publish: {replicas: 2}}", "at '/scaled/publish/replicas': "),
    (
        SCALED + "scaled: {score: {roles: [score, publish]}}",
        "at '/scaled/score/roles/1': value must be one of 'receive', 'assemble', 'score', 'judge'",
    ),
    (
        SCALED + "scaled: {score: {autoscaling: {hpa: {enabled: true}, keda: {enabled: true}}}}",
        "at '/scaled/score/autoscaling/keda/enabled': value must be false",
    ),
    (
        SCALED + "scaled: {score: {replicas: 13}}",
        "scaled.score.replicas: 13 is more than config.log.kafka.partitions (12)",
    ),
    (
        SCALED + "scaled: {judge: {autoscaling: {keda: {enabled: true, maxReplicaCount: 20}}}}",
        "scaled.judge.autoscaling.keda.maxReplicaCount: 20 is more than",
    ),
    # the mode and its log
    ("mode: daemonset", "at '/mode': value must be one of 'standalone', 'scaled', 'sidecar'"),
    ("mode: scaled", "missing propert"),
    (
        "mode: scaled\nconfig: {log: {kafka: {partitions: 24}}}",
        "at '/config/log/kafka': missing property 'bootstrap_servers'",
    ),
    (
        "mode: scaled\nconfig: {log: {kind: disk, kafka: {bootstrap_servers: 'kafka:9092'}}}",
        "at '/config/log/kind': value must be 'kafka'",
    ),
    (
        "config: {log: {kind: kafka, kafka: {bootstrap_servers: 'kafka:9092'}}}",
        "at '/config/log/kind': value must be one of 'disk', 'memory'",
    ),
    # values of the wrong kind
    ("ports: {grpc: 70000}", "at '/ports/grpc': maximum: got 70,000, want 65,535"),
    ("image: {tag: 1}", "at '/image/tag': got number, want string"),
    ("image: {digest: 'sha256:12'}", "at '/image/digest': 'sha256:12' does not match"),
    (
        "standalone: {persistence: {size: 10GB}}",
        "at '/standalone/persistence/size': '10GB' does not match pattern",
    ),
    ("prometheusRule: {disabled: {AgentDrop: true}}", "invalid propertyName 'AgentDrop'"),
    (
        "securityContext: {allowPrivilegeEscalation: true}",
        "at '/securityContext/allowPrivilegeEscalation': value must be false",
    ),
    (
        "terminationGracePeriodSeconds: 30",
        "at '/terminationGracePeriodSeconds': minimum: got 30, want 45",
    ),
    (
        "terminationGracePeriodSeconds: 60\npreStopSeconds: 30",
        "terminationGracePeriodSeconds: 60 is less than preStopSeconds (30), config.receiver.stop_delay",
    ),
    # what does not go together
    (
        SCALED + "scaled: {score: {autoscaling: {hpa: {enabled: true}}}}",
        "scaled.score.autoscaling.hpa: needs resources.requests.cpu",
    ),
    (
        SCALED + "secrets: {kafka: {existingSecret: kafka}}",
        "secrets.kafka.existingSecret: needs config.log.kafka.security.protocol SASL_SSL or",
    ),
    (
        "secrets: {forwardHeaders: {existingSecret: s, headers: {authorization: a}}}",
        "secrets.forwardHeaders: there is no config.forward",
    ),
    (
        "config: {forward: {endpoint: 'https://a:4317', keep: {share: 1.1}}}",
        "at '/config/forward/keep/share'",
    ),
    ("config: {forward: {keep: {share: 0.1}}}", "missing property 'endpoint'"),
    (
        "serviceMonitor: {enabled: true}\npodMonitor: {enabled: true}",
        "at '/serviceMonitor/enabled': value must be false",
    ),
    (
        "ingress: {enabled: true, hosts: [spanwise.example.com]}",
        "secrets.adminTokens.existingSecret: required with ingress or httpRoute",
    ),
    (
        "httpRoute: {enabled: true}\nsecrets: {adminTokens: {existingSecret: admin}}",
        "at '/httpRoute/parentRefs': minItems: got 0, want 1",
    ),
    (
        "mode: sidecar\ningress: {enabled: true, hosts: [a.example.com]}",
        "at '/ingress/enabled': value must be false",
    ),
    # what only templates can see
    (
        SCALED + "tls: {kafka: {existingSecret: x}}",
        "tls.kafka.existingSecret: needs config.log.kafka.security.protocol",
    ),
    (
        SASL + "scaled: {score: {autoscaling: {keda: {enabled: true}}}}",
        "scaled.score.autoscaling.keda: KEDA needs secrets.kafka.existingSecret",
    ),
    (
        "config: {log: {disk: {max_size: 16GiB}}}",
        "and sinks.jsonl (max_size x (keep + 1)) of config, which may take 18240 MiB together",
    ),
    ("mode: sidecar\nsidecar: {dataSizeLimit: 2Gi}", "sidecar.dataSizeLimit: 2Gi is too small"),
    (
        SCALED + "scaled: {publish: {persistence: {size: 1G}}}",
        "scaled.publish.persistence.size: 1G is too small for serve.index",
    ),
    (
        "standalone: {overrides: {preStopSeconds: 21}}",
        "terminationGracePeriodSeconds: 60 is less than preStopSeconds (21)",
    ),
    (
        SCALED
        + "scaled: {publish: {enabled: false}}\nhttpRoute: {enabled: true, parentRefs: [{name: public}]}\n"
        + TOKENS,
        "scaled.publish.enabled: ingress and httpRoute lead to the page",
    ),
]


@for_each("values,reason", REFUSED)
def test_refused_with_the_place_and_the_reason(values: str, reason: str) -> None:
    assert reason in refusal(values)


@for_each(
    "values,place",
    [
        ("config: {judge: {api_key: sk-1234567890}}", "judge/api_key"),
        ("config: {judge: {api_key: '${env:KEY:-sk-1234567890}'}}", "judge/api_key"),
        ("config: {redaction: {key: sk-1234567890}}", "redaction/key"),
        (
            "config: {forward: {endpoint: 'https://a:4317', headers: {authorization: sk-1234567890}}}",
            "forward/headers/authorization",
        ),
        (
            SCALED.replace("'kafka:9092'", "'k:9092', security: {password: sk-1234567890}"),
            "log/kafka/security/password",
        ),
    ],
)
def test_a_secret_as_text_is_refused_and_is_not_in_the_refusal(values: str, place: str) -> None:
    reason = refusal(values)

    assert f"at '/config/{place}'" in reason
    assert "value must be '${env:NAME}'" in reason
    assert "sk-1234567890" not in reason


@for_each(
    "values",
    [
        "",
        SCALED,
        KAFKA,
        "mode: sidecar",
        "global: {imageRegistry: mirror}\nenabled: true",
        "standalone: {replicas: 0}",
        "config: {judge: {model: openai/gpt-4o, api_key: '${env:OPENAI_API_KEY}'}}",
        "config: {workers: auto, windows: {trace: {idle: 30}}}",
        "podSecurityContext: {runAsUser: null, fsGroup: null}",
        # the log fits its volume
        "config: {log: {disk: {max_size: 8400000000}}}",
        "config: {log: {disk: {max_size: '${env:LOG_SIZE}'}}}",
        "config: {log: {disk: {max_size: 9GiB}}, sinks: {jsonl: null}}",
        "config: {log: {disk: {max_size: 8.5GiB}}, sinks: {jsonl: {keep: 0}}}",
        # the stop and its delay fit the grace
        *(
            f"config: {{receiver: {{stop_delay: {delay}}}}}"
            for delay in ("15s", "14500ms", "0.25m", "15", "null", "'${env:DELAY:-1s}'")
        ),
    ],
)
def test_accepted(values: str) -> None:
    assert not refusal(values)

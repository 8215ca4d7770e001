{{/* Environment, volumes and mounts of the main container: everything that the chart sets comes as SPANWISE_<PATH>,
which is above the file and above what the image sets. */}}

{{- define "spanwise.fromSecret" -}}
- name: {{ .name }}
  valueFrom: {secretKeyRef: {name: {{ .secret }}, key: {{ .key | quote }}}}
{{- end }}

{{/* Several secrets in one variable. Takes name, from, secret, keys. */}}
{{- define "spanwise.tokens" -}}
{{- if .secret }}
{{- $names := list }}
{{- range $at, $key := .keys }}
{{- $name := printf "%s_%d" $.from $at }}
{{- $names = append $names (printf "'$(%s)'" $name) }}
{{ include "spanwise.fromSecret" (dict "name" $name "secret" $.secret "key" $key) }}
{{- end }}
- name: {{ .name }}
  value: {{ printf "[%s]" (join ", " $names) | quote }}
{{- end }}
{{- end }}

{{- define "spanwise.headers" -}}
{{- if .secret }}
{{- $pairs := list }}
{{- range $at, $header := keys .headers | sortAlpha }}
{{- $name := printf "%s_%d" $.from $at }}
{{- $pairs = append $pairs (printf "'%s': '$(%s)'" $header $name) }}
{{ include "spanwise.fromSecret" (dict "name" $name "secret" $.secret "key" (get $.headers $header)) }}
{{- end }}
- name: {{ .name }}
  value: {{ printf "{%s}" (join ", " $pairs) | quote }}
{{- end }}
{{- end }}

{{/* User, password and files of a Kafka connection. Takes secret, tls, prefix, folder. */}}
{{- define "spanwise.kafkaSecurity" -}}
{{- if .secret.existingSecret }}
{{ include "spanwise.fromSecret" (dict "name" (printf "%s__USERNAME" .prefix) "secret" .secret.existingSecret "key" .secret.usernameKey) }}
{{ include "spanwise.fromSecret" (dict "name" (printf "%s__PASSWORD" .prefix) "secret" .secret.existingSecret "key" .secret.passwordKey) }}
{{- end }}
{{- if .tls.existingSecret }}
{{- range $setting, $key := dict "CA_FILE" .tls.caKey "CERT_FILE" .tls.certKey "KEY_FILE" .tls.keyKey }}
{{- if $key }}
- name: {{ $.prefix }}__{{ $setting }}
  value: {{ $.folder }}/{{ $key }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Takes root, roles, host, settings. */}}
{{- define "spanwise.environment" -}}
{{- $values := .root.Values -}}
{{- $roles := .roles -}}
- name: SPANWISE_ROLES
  value: {{ toJson .roles | quote }}
- name: SPANWISE_DATA_DIR
  value: /data/spanwise
- name: SPANWISE_LOG__KIND
  value: {{ default (ternary "kafka" "disk" (eq $values.mode "scaled")) (default dict $values.config.log).kind }}
{{- if eq $values.mode "sidecar" }}
- name: SPANWISE_DRAIN_ON_STOP
  value: {{ $values.sidecar.drainOnStop | quote }}
{{- end }}
- name: SPANWISE_RECEIVER__GRPC__HOST
  value: {{ .host | quote }}
- name: SPANWISE_RECEIVER__GRPC__PORT
  value: {{ $values.ports.grpc | quote }}
- name: SPANWISE_RECEIVER__HTTP__HOST
  value: {{ .host | quote }}
- name: SPANWISE_RECEIVER__HTTP__PORT
  value: {{ $values.ports.http | quote }}
- name: SPANWISE_ADMIN__HOST
  value: {{ $values.listenHost | quote }}
- name: SPANWISE_ADMIN__PORT
  value: {{ $values.ports.admin | quote }}
{{- with include "spanwise.basePath" .root }}
- name: SPANWISE_ADMIN__BASE_PATH
  value: {{ . | quote }}
{{- end }}
{{- if has "receive" $roles }}
{{- with $values.tls.receiver }}
{{- if .existingSecret }}
- name: SPANWISE_RECEIVER__TLS__CERT_FILE
  value: /etc/spanwise/tls/receiver/{{ .certKey }}
- name: SPANWISE_RECEIVER__TLS__KEY_FILE
  value: /etc/spanwise/tls/receiver/{{ .keyKey }}
{{- with .clientCaKey }}
- name: SPANWISE_RECEIVER__TLS__CLIENT_CA_FILE
  value: /etc/spanwise/tls/receiver/{{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- with $values.secrets.receiverTokens }}
{{- include "spanwise.tokens" (dict "name" "SPANWISE_RECEIVER__BEARER_TOKENS" "from" "SECRET_RECEIVER_TOKEN" "secret" .existingSecret "keys" .keys) }}
{{- end }}
{{- with $values.secrets.forwardHeaders }}
{{- include "spanwise.headers" (dict "name" "SPANWISE_FORWARD__HEADERS" "from" "SECRET_FORWARD_HEADER" "secret" .existingSecret "headers" .headers) }}
{{- end }}
{{- end }}
{{- if has "publish" $roles }}
{{- with $values.secrets.adminTokens }}
{{- include "spanwise.tokens" (dict "name" "SPANWISE_ADMIN__BEARER_TOKENS" "from" "SECRET_ADMIN_TOKEN" "secret" .existingSecret "keys" .keys) }}
{{- end }}
{{- with $values.secrets.sinkOtlpHeaders }}
{{- include "spanwise.headers" (dict "name" "SPANWISE_SINKS__OTLP__HEADERS" "from" "SECRET_SINK_OTLP_HEADER" "secret" .existingSecret "headers" .headers) }}
{{- end }}
{{- include "spanwise.kafkaSecurity" (dict "secret" $values.secrets.sinkKafka "tls" $values.tls.sinkKafka "prefix" "SPANWISE_SINKS__KAFKA__SECURITY" "folder" "/etc/spanwise/tls/sink-kafka") }}
{{- end }}
{{- if has "judge" $roles }}
{{- with $values.secrets.judgeApiKey }}
{{- if .existingSecret }}
{{ include "spanwise.fromSecret" (dict "name" "SPANWISE_JUDGE__API_KEY" "secret" .existingSecret "key" .key) }}
{{- end }}
{{- end }}
{{- with $values.secrets.embedderApiKey }}
{{- if .existingSecret }}
{{ include "spanwise.fromSecret" (dict "name" "SPANWISE_EMBEDDER__API_KEY" "secret" .existingSecret "key" .key) }}
{{- end }}
{{- end }}
{{- end }}
{{- include "spanwise.kafkaSecurity" (dict "secret" $values.secrets.kafka "tls" $values.tls.kafka "prefix" "SPANWISE_LOG__KAFKA__SECURITY" "folder" "/etc/spanwise/tls/kafka") }}
{{- with $values.secrets.redactionKey }}
{{- if .existingSecret }}
{{ include "spanwise.fromSecret" (dict "name" "SPANWISE_REDACTION__KEY" "secret" .existingSecret "key" .key) }}
{{- end }}
{{- end }}
- name: HOME
  value: /tmp
- name: PYTHONDONTWRITEBYTECODE
  value: "1"
{{- with .settings.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* YAML, a map of volume name to secret and folder: the certificates that these roles read. */}}
{{- define "spanwise.certificates" -}}
{{- $tls := .root.Values.tls -}}
{{- $found := dict -}}
{{- if and $tls.receiver.existingSecret (has "receive" .roles) -}}
{{- $_ := set $found "tls-receiver" (dict "secret" $tls.receiver.existingSecret "folder" "/etc/spanwise/tls/receiver") -}}
{{- end -}}
{{- if $tls.kafka.existingSecret -}}
{{- $_ := set $found "tls-kafka" (dict "secret" $tls.kafka.existingSecret "folder" "/etc/spanwise/tls/kafka") -}}
{{- end -}}
{{- if and $tls.sinkKafka.existingSecret (has "publish" .roles) -}}
{{- $_ := set $found "tls-sink-kafka" (dict "secret" $tls.sinkKafka.existingSecret "folder" "/etc/spanwise/tls/sink-kafka") -}}
{{- end -}}
{{- toYaml $found -}}
{{- end }}

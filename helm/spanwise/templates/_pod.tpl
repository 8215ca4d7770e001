{{/* The pod, and its main container, which a sidecar is too. */}}

{{/* Takes root, roles, host, settings, prefix (of volume names), native (a sidecar among the init containers). */}}
{{- define "spanwise.container" -}}
{{- $values := .root.Values -}}
{{- $settings := .settings -}}
name: spanwise
image: {{ include "spanwise.image" .root }}
imagePullPolicy: {{ $values.image.pullPolicy }}
{{- if .native }}
restartPolicy: Always
{{- end }}
args: [run, --config, /etc/spanwise/spanwise.yaml]
env:
  {{- include "spanwise.environment" . | nindent 2 }}
{{- with $settings.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  {{- if has "receive" .roles }}
  - {name: otlp-grpc, containerPort: {{ $values.ports.grpc }}, protocol: TCP}
  - {name: otlp-http, containerPort: {{ $values.ports.http }}, protocol: TCP}
  {{- end }}
  - {name: admin, containerPort: {{ $values.ports.admin }}, protocol: TCP}
{{- /* A sidecar neither holds back the start of the user's pod nor takes it out of its Services. */}}
{{- if ne $values.mode "sidecar" }}
startupProbe:
  httpGet: {path: /readyz, port: admin}
  {{- toYaml $settings.startupProbe | nindent 2 }}
readinessProbe:
  httpGet: {path: /readyz, port: admin}
  {{- toYaml $settings.readinessProbe | nindent 2 }}
{{- end }}
livenessProbe:
  httpGet: {path: /healthz, port: admin}
  {{- toYaml $settings.livenessProbe | nindent 2 }}
{{- if $settings.lifecycle }}
lifecycle:
  {{- toYaml $settings.lifecycle | nindent 2 }}
{{- else if and (int $settings.preStopSeconds) (ne $values.mode "sidecar") }}
lifecycle:
  preStop: {sleep: {seconds: {{ int $settings.preStopSeconds }}}}
{{- end }}
{{- with $settings.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml $settings.securityContext | nindent 2 }}
volumeMounts:
  - {name: {{ .prefix }}config, mountPath: /etc/spanwise/spanwise.yaml, subPath: spanwise.yaml, readOnly: true}
  - {name: {{ .prefix }}data, mountPath: /data}
  - {name: {{ .prefix }}tmp, mountPath: /tmp}
  {{- range $name, $each := include "spanwise.certificates" . | fromYaml }}
  - {name: {{ $.prefix }}{{ $name }}, mountPath: {{ $each.folder }}, readOnly: true}
  {{- end }}
  {{- with $settings.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Everything but `data`. Takes root, roles, settings, prefix. */}}
{{- define "spanwise.volumes" -}}
- name: {{ .prefix }}config
  configMap: {name: {{ include "spanwise.fullname" .root }}, defaultMode: 0444}
- name: {{ .prefix }}tmp
  emptyDir: {}
{{- range $name, $each := include "spanwise.certificates" . | fromYaml }}
- name: {{ $.prefix }}{{ $name }}
  secret: {secretName: {{ $each.secret }}, defaultMode: {{ ternary "0440" "0444" (empty $.prefix) }}}
{{- end }}
{{- with .settings.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "spanwise.spread" -}}
{{- $selector := include "spanwise.selectorLabels" .root | fromYaml -}}
{{- $_ := set $selector "app.kubernetes.io/component" .component -}}
{{- $found := list -}}
{{- range .constraints -}}
{{- $found = append $found (merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" $selector))) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end }}

{{/* Takes root, workload, persistence (nil: none). */}}
{{- define "spanwise.podTemplate" -}}
{{- $values := .root.Values -}}
{{- $workload := .workload -}}
{{- $settings := include "spanwise.settingsOf" (dict "root" .root "overrides" $workload.values.overrides) | fromYaml -}}
{{- $context := dict "root" .root "roles" $workload.roles "host" $values.listenHost "settings" $settings "prefix" "" -}}
metadata:
  labels:
    {{- $labels := include "spanwise.labels" .root | fromYaml }}
    {{- $_ := unset $labels "helm.sh/chart" }}
    {{- $_ := set $labels "app.kubernetes.io/component" $workload.component }}
    {{- mergeOverwrite (deepCopy $settings.podLabels) $labels | toYaml | nindent 4 }}
  annotations:
    checksum/config: {{ toYaml $values.config | sha256sum }}
    {{- with mergeOverwrite (dict) $values.commonAnnotations $settings.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "spanwise.serviceAccountName" .root }}
  automountServiceAccountToken: {{ $values.serviceAccount.automount }}
  enableServiceLinks: false
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    {{- toYaml $settings.podSecurityContext | nindent 4 }}
  terminationGracePeriodSeconds: {{ int $settings.terminationGracePeriodSeconds }}
  {{- with $settings.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $settings.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with $settings.dnsPolicy }}
  dnsPolicy: {{ . }}
  {{- end }}
  {{- with $settings.dnsConfig }}
  dnsConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $settings.hostAliases }}
  hostAliases:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $settings.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $settings.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $settings.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $settings.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- include "spanwise.spread" (dict "root" $.root "component" $workload.component "constraints" .) | nindent 4 }}
  {{- end }}
  {{- with $settings.extraInitContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - {{ include "spanwise.container" $context | indent 6 | trim }}
    {{- with $settings.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    {{- include "spanwise.volumes" $context | nindent 4 }}
    {{- with .persistence }}
    {{- if .existingClaim }}
    - name: data
      persistentVolumeClaim: {claimName: {{ .existingClaim }}}
    {{- else if not .enabled }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- else }}
    - name: data
      emptyDir: {}
    {{- end }}
{{- end }}

{{/* Names and labels. */}}

{{/* At most 40 characters, so that names made from it stay below 52, the most that a StatefulSet's pods can carry in
their labels. A longer one ends with a digest, so that two that begin alike differ. */}}
{{- define "spanwise.fullname" -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- $name := .Values.fullnameOverride -}}
{{- if not $name -}}
{{- $name = ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name) -}}
{{- end -}}
{{- if gt (len $name) 40 -}}
{{- $name = printf "%s-%s" (trunc 31 $name | trimSuffix "-") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{- $name | trimSuffix "-" -}}
{{- end }}

{{- define "spanwise.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end }}

{{- define "spanwise.serviceAccountName" -}}
{{- default (ternary (include "spanwise.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end }}

{{/* What selects the pods of a release; never changes. */}}
{{- define "spanwise.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "spanwise.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "spanwise.selectorLabels" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | trimAll "-._" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: spanwise
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The metadata of an object. Takes root, name, and of its own: component, labels, annotations, namespace. */}}
{{- define "spanwise.metadata" -}}
name: {{ .name }}
{{- if not .cluster }}
namespace: {{ default (include "spanwise.namespace" .root) .namespace }}
{{- end }}
labels:
  {{- $own := dict -}}
  {{- with .component }}{{ $_ := set $own "app.kubernetes.io/component" . }}{{ end }}
  {{- $labels := include "spanwise.labels" .root | fromYaml }}
  {{- mergeOverwrite $labels $own (default dict .labels) | toYaml | nindent 2 }}
{{- with mergeOverwrite (dict) .root.Values.commonAnnotations (default dict .annotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "spanwise.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end -}}
{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .Chart.AppVersion $image.tag }}{{ end -}}
{{- end }}

{{/* The path below which the page stands: the configuration's, else what the ingress' path begins with before the first
character of a pattern, as in `/spanwise(/|$)(.*)`. */}}
{{- define "spanwise.basePath" -}}
{{- $own := dig "admin" "base_path" "" .Values.config -}}
{{- if $own -}}
{{- trimSuffix "/" $own -}}
{{- else if .Values.ingress.enabled -}}
{{- regexFind "^(/[A-Za-z0-9._~-]+)+" .Values.ingress.path -}}
{{- end -}}
{{- end }}

{{/* The address of the page, for links: what leads to it from outside, else its Service. */}}
{{- define "spanwise.page" -}}
{{- $values := .Values -}}
{{- if $values.prometheusRule.page -}}
{{- trimSuffix "/" $values.prometheusRule.page -}}
{{- else if and $values.httpRoute.enabled $values.httpRoute.hostnames -}}
https://{{ first $values.httpRoute.hostnames }}
{{- else if and $values.ingress.enabled $values.ingress.hosts -}}
{{ ternary "https" "http" (not (empty $values.ingress.tls)) }}://{{ first $values.ingress.hosts }}{{ include "spanwise.basePath" . }}
{{- else if eq $values.mode "sidecar" -}}
http://127.0.0.1:{{ $values.ports.admin }}
{{- else -}}
http://{{ include "spanwise.fullname" . }}-admin.{{ include "spanwise.namespace" . }}:{{ $values.ports.admin }}
{{- end -}}
{{- end }}

{{/* The container and the volumes of a sidecar. Takes root and native. Names of volumes begin with spanwise-, because
they stand among those of the user's pod. The receivers listen on the pod's loopback only. */}}

{{- define "spanwise.sidecarContext" -}}
{{- $settings := include "spanwise.settingsOf" (dict "root" .root) | fromYaml -}}
{{- dict "roles" (list "receive" "assemble" "score" "judge" "publish") "host" "127.0.0.1" "prefix" "spanwise-" "settings" $settings | toYaml -}}
{{- end }}

{{- define "spanwise.sidecarContainer" -}}
{{- $context := include "spanwise.sidecarContext" . | fromYaml -}}
{{- $container := include "spanwise.container" (merge $context (dict "root" .root "native" .native)) | fromYaml -}}
{{- $security := merge (deepCopy $container.securityContext) (omit .root.Values.podSecurityContext "fsGroup" "fsGroupChangePolicy" "supplementalGroups" "supplementalGroupsPolicy" "sysctls") -}}
{{- $_ := set $container "securityContext" $security -}}
{{- toYaml $container -}}
{{- end }}

{{- define "spanwise.sidecarVolumes" -}}
{{- $context := include "spanwise.sidecarContext" . | fromYaml -}}
{{- include "spanwise.volumes" (merge $context (dict "root" .root)) }}
- name: spanwise-data
  emptyDir: {sizeLimit: {{ .root.Values.sidecar.dataSizeLimit }}}
{{- end }}

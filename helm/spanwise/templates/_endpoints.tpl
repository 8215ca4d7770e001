{{/* The ports of the configuration's endpoints, for the policies. */}}

{{/* Of one endpoint: its own, else its scheme's; none on loopback. One that comes by environment is taken for https. */}}
{{- define "spanwise.portOf" -}}
{{- $host := regexFind "^[^/?#]*" (regexReplaceAll "^[a-z]+://" . "") -}}
{{- if not (regexMatch "^(localhost|127\\.[0-9.]+|\\[::1\\])(:[0-9]+)?$" $host) -}}
{{- $own := regexFind ":[0-9]+$" $host | trimPrefix ":" -}}
{{- default (ternary "80" "443" (hasPrefix "http://" .)) $own -}}
{{- end -}}
{{- end }}

{{/* A list of ports as JSON: of `forward`, `metrics.otlp`, `notify` and the sinks. */}}
{{- define "spanwise.endpointPorts" -}}
{{- $config := .Values.config -}}
{{- $told := values (default dict (default dict $config.notify).to) -}}
{{- $sinks := default dict $config.sinks -}}
{{- $found := list $config.forward (default dict $config.metrics).otlp -}}
{{- $defaults := dict "phoenix" "http://127.0.0.1" "mlflow" "http://127.0.0.1" "langfuse" "https://" "langsmith" "https://" "datadog" "https://" "otlp" "" -}}
{{- range $name, $endpoint := $defaults -}}
{{- with get $sinks $name -}}
{{- $found = append $found (merge (dict) . (dict "endpoint" $endpoint)) -}}
{{- end -}}
{{- end -}}
{{- range $told -}}
{{- $found = append $found (merge (dict) . (ternary (dict "endpoint" "https://") dict (hasKey . "pagerduty"))) -}}
{{- end -}}
{{- $ports := list -}}
{{- range $found -}}
{{- range pick (default dict .) "endpoint" "slack" "teams" "alertmanager" "webhook" -}}
{{- with . -}}{{- with include "spanwise.portOf" . -}}{{- $ports = append $ports (int .) -}}{{- end -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- ternary $ports list .Values.networkPolicy.egress.endpoints.enabled | uniq | toJson -}}
{{- end }}

{{/* The same of the judge and the hosted embedder, beside the ports that are set. */}}
{{- define "spanwise.judgePorts" -}}
{{- $ports := list -}}
{{- range .Values.networkPolicy.egress.judge.ports -}}{{- $ports = append $ports (int .) -}}{{- end -}}
{{- range list .Values.config.judge .Values.config.embedder -}}
{{- with (default dict .).base_url -}}{{- with include "spanwise.portOf" . -}}{{- $ports = append $ports (int .) -}}{{- end -}}{{- end -}}
{{- end -}}
{{- $ports | uniq | toJson -}}
{{- end }}

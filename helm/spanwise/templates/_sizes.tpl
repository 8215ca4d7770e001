{{/* Whether a volume holds what is written to it: a full one stops the receivers, and a pod whose emptyDir is too large
is evicted. */}}

{{/* MiB of a size of Spanwise (4GiB, bytes) or Kubernetes (10Gi), rounded up; 0: it is a reference. */}}
{{- define "spanwise.mebibytes" -}}
{{- $factors := dict "" 0.00000095367431640625 "B" 0.00000095367431640625 "KiB" 0.0009765625 "MiB" 1 "GiB" 1024 "TiB" 1048576 -}}
{{- $factors = merge $factors (dict "Ki" 0.0009765625 "Mi" 1 "Gi" 1024 "Ti" 1048576 "Pi" 1073741824 "k" 0.00095367431640625 "M" 0.95367431640625 "G" 953.67431640625 "T" 953674.31640625) -}}
{{- $text := ternary (printf "%.0f" (float64 (ternary . 0 (kindIs "float64" .)))) (toString .) (kindIs "float64" .) -}}
{{- $number := regexFind "^[0-9]+([.][0-9]+)?" $text -}}
{{- $unit := trimPrefix $number $text | trim -}}
{{- if and $number (hasKey $factors $unit) -}}
{{- mulf (float64 $number) (get $factors $unit) | ceil | int64 -}}
{{- else -}}0{{- end -}}
{{- end }}

{{/* Takes root, path (of the value), size (of the volume), log (whether it has the log). */}}
{{- define "spanwise.checkRoom" -}}
{{- $config := .root.Values.config -}}
{{- $sinks := default dict $config.sinks -}}
{{- $log := and .log (eq (default "disk" (default dict $config.log).kind) "disk") -}}
{{- $jsonl := ternary (default dict $sinks.jsonl) (dict "off" true) (or (not (hasKey $sinks "jsonl")) (not (empty $sinks.jsonl))) -}}
{{- $parts := dict "serve.index" (default "512MiB" (default dict $config.serve).index) -}}
{{- if $log -}}{{- $_ := set $parts "log.disk.max_size" (default "4GiB" (default dict (default dict $config.log).disk).max_size) -}}{{- end -}}
{{- if and .log (default dict $config.judge).model -}}{{- $_ := set $parts "judge.cache" (default "256MiB" $config.judge.cache) -}}{{- end -}}
{{- $needed := ternary 64 0 $log -}}
{{- range $parts -}}{{- $needed = add $needed (include "spanwise.mebibytes" . | int64) -}}{{- end -}}
{{- if not $jsonl.off -}}
{{- $files := add 1 (int (ternary $jsonl.keep 4 (hasKey $jsonl "keep"))) -}}
{{- $needed = add $needed (mul $files (include "spanwise.mebibytes" (default "256MiB" $jsonl.max_size) | int64)) -}}
{{- end -}}
{{- $has := include "spanwise.mebibytes" .size | int64 -}}
{{- if and $has (lt $has $needed) -}}
{{- fail (printf "%s: %s is too small for %s and sinks.jsonl (max_size x (keep + 1)) of config, which may take %d MiB together" .path .size (keys $parts | sortAlpha | join ", ") $needed) -}}
{{- end -}}
{{- end }}

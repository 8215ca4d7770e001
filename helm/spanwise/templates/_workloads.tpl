{{/* Which workloads a mode has, and what is settled about each. */}}

{{/* The settings of pods that `overrides` may change. */}}
{{- define "spanwise.podSettings" -}}
podAnnotations podLabels resources nodeSelector tolerations affinity topologySpreadConstraints priorityClassName
runtimeClassName terminationGracePeriodSeconds preStopSeconds lifecycle startupProbe readinessProbe livenessProbe
dnsPolicy dnsConfig hostAliases extraEnv extraEnvFrom extraVolumes extraVolumeMounts extraContainers extraInitContainers podSecurityContext
securityContext
{{- end }}

{{/* YAML, a list: name (of the object), component, roles, values (of its section), kind. */}}
{{- define "spanwise.workloads" -}}
{{- $fullname := include "spanwise.fullname" . -}}
{{- $found := list -}}
{{- if eq .Values.mode "standalone" -}}
{{- $all := list "receive" "assemble" "score" "judge" "publish" -}}
{{- $found = append $found (dict "name" $fullname "component" "standalone" "roles" $all "kind" "StatefulSet" "values" .Values.standalone) -}}
{{- else if eq .Values.mode "scaled" -}}
{{- range $component := list "receive" "assemble" "score" "judge" "publish" -}}
{{- $section := get $.Values.scaled $component -}}
{{- if $section.enabled -}}
{{- $kind := ternary "StatefulSet" "Deployment" (eq $component "publish") -}}
{{- $found = append $found (dict "name" (printf "%s-%s" $fullname $component) "component" $component "roles" $section.roles "kind" $kind "values" $section) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "items" $found | toYaml -}}
{{- end }}

{{/* `config.receiver.stop_delay` in whole seconds, rounded up; from a variable: the default. */}}
{{- define "spanwise.stopDelay" -}}
{{- $receiver := default dict .Values.config.receiver -}}
{{- $given := ternary (toString (get $receiver "stop_delay")) "1s" (hasKey $receiver "stop_delay") -}}
{{- if has $given (list "" "<nil>") -}}
0
{{- else if regexMatch "^[0-9.]+[a-z]*$" $given -}}
{{- $seconds := dict "ms" 0.001 "m" 60 "h" 3600 "d" 86400 -}}
{{- ceil (mulf (regexFind "^[0-9.]+" $given) (default 1 (get $seconds (regexFind "[a-z]+$" $given)))) -}}
{{- else -}}
1
{{- end -}}
{{- end }}

{{/* YAML: the settings of the pods of one workload. Takes root and overrides. */}}
{{- define "spanwise.settingsOf" -}}
{{- $common := dict -}}
{{- range regexSplit "\\s+" (include "spanwise.podSettings" .root | trim) -1 -}}
{{- $_ := set $common . (get $.root.Values .) -}}
{{- end -}}
{{- $settled := mergeOverwrite (deepCopy $common) (deepCopy (default dict .overrides)) -}}
{{- $wait := ternary 0 (int $settled.preStopSeconds) (not (empty $settled.lifecycle)) -}}
{{- $delay := include "spanwise.stopDelay" .root | int -}}
{{- if lt (int $settled.terminationGracePeriodSeconds) (int (add $wait $delay 40)) -}}
{{- fail (printf "terminationGracePeriodSeconds: %d is less than preStopSeconds (%d), config.receiver.stop_delay (%d s) and the 40 s that a stop takes at most" (int $settled.terminationGracePeriodSeconds) $wait $delay) -}}
{{- end -}}
{{- toYaml $settled -}}
{{- end }}

{{/* The component that takes spans, and the one that has the page: the pods behind the two Services. */}}
{{- define "spanwise.componentOf" -}}
{{- $role := .role -}}
{{- $found := "" -}}
{{- range (include "spanwise.workloads" .root | fromYaml).items -}}
{{- if and (not $found) (has $role .roles) -}}{{- $found = .component -}}{{- end -}}
{{- end -}}
{{- $found -}}
{{- end }}

{{/* What no schema can say. */}}
{{- define "spanwise.check" -}}
{{- $values := .Values -}}
{{- $kafka := default dict (default dict $values.config.log).kafka -}}
{{- $partitions := int (default 12 $kafka.partitions) -}}
{{- if eq $values.mode "scaled" -}}
{{- if not $kafka.bootstrap_servers -}}
{{- fail "config.log.kafka.bootstrap_servers: required with mode scaled, such as kafka-1:9092,kafka-2:9092" -}}
{{- end -}}
{{- range $workload := (include "spanwise.workloads" . | fromYaml).items -}}
{{- $scaling := default dict $workload.values.autoscaling -}}
{{- $settings := include "spanwise.settingsOf" (dict "root" $ "overrides" $workload.values.overrides) | fromYaml -}}
{{- if and (default dict $scaling.hpa).enabled (not (default dict $settings.resources.requests).cpu) -}}
{{- fail (printf "scaled.%s.autoscaling.hpa: needs resources.requests.cpu, which its target is a share of" $workload.component) -}}
{{- end -}}
{{- $keda := default dict $scaling.keda -}}
{{- if and $keda.enabled (eq (default "" $keda.trigger) "kafka") (hasPrefix "SASL" (default "" (default dict $kafka.security).protocol)) (not $values.secrets.kafka.existingSecret) (not $keda.authenticationRef) -}}
{{- fail (printf "scaled.%s.autoscaling.keda: KEDA needs secrets.kafka.existingSecret or authenticationRef to ask this Kafka" $workload.component) -}}
{{- end -}}
{{- end -}}
{{- range $component := list "assemble" "score" "judge" -}}
{{- $section := get $values.scaled $component -}}
{{- $most := dict "replicas" $section.replicas -}}
{{- if $section.autoscaling.hpa.enabled -}}{{- $most = dict "autoscaling.hpa.maxReplicas" $section.autoscaling.hpa.maxReplicas -}}{{- end -}}
{{- if $section.autoscaling.keda.enabled -}}{{- $most = dict "autoscaling.keda.maxReplicaCount" $section.autoscaling.keda.maxReplicaCount -}}{{- end -}}
{{- range $path, $count := $most -}}
{{- if and $section.enabled (gt (int $count) $partitions) -}}
{{- fail (printf "scaled.%s.%s: %d is more than config.log.kafka.partitions (%d); a process without a partition does nothing" $component $path (int $count) $partitions) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $protocol := default "PLAINTEXT" (default dict $kafka.security).protocol -}}
{{- $sinks := default dict $values.config.sinks -}}
{{- if and $values.secrets.kafka.existingSecret (not (hasPrefix "SASL" $protocol)) -}}
{{- fail (printf "secrets.kafka.existingSecret: needs config.log.kafka.security.protocol SASL_SSL or SASL_PLAINTEXT, which is %s" $protocol) -}}
{{- end -}}
{{- if and $values.tls.kafka.existingSecret (not (hasSuffix "SSL" $protocol)) -}}
{{- fail (printf "tls.kafka.existingSecret: needs config.log.kafka.security.protocol SSL or SASL_SSL, which is %s" $protocol) -}}
{{- end -}}
{{- if and (or $values.secrets.sinkKafka.existingSecret $values.tls.sinkKafka.existingSecret) (not $sinks.kafka) -}}
{{- fail "secrets.sinkKafka, tls.sinkKafka: there is no config.sinks.kafka" -}}
{{- end -}}
{{- if and $values.secrets.sinkOtlpHeaders.existingSecret (not $sinks.otlp) -}}
{{- fail "secrets.sinkOtlpHeaders: there is no config.sinks.otlp" -}}
{{- end -}}
{{- if and $values.secrets.forwardHeaders.existingSecret (not $values.config.forward) -}}
{{- fail "secrets.forwardHeaders: there is no config.forward" -}}
{{- end -}}
{{- $standalone := $values.standalone.persistence -}}
{{- $publish := $values.scaled.publish.persistence -}}
{{- if eq $values.mode "sidecar" -}}
{{- include "spanwise.checkRoom" (dict "root" . "path" "sidecar.dataSizeLimit" "size" $values.sidecar.dataSizeLimit "log" true) -}}
{{- else if and (eq $values.mode "standalone") $standalone.enabled (not $standalone.existingClaim) -}}
{{- include "spanwise.checkRoom" (dict "root" . "path" "standalone.persistence.size" "size" $standalone.size "log" true) -}}
{{- else if and (eq $values.mode "scaled") $publish.enabled (not $publish.existingClaim) -}}
{{- include "spanwise.checkRoom" (dict "root" . "path" "scaled.publish.persistence.size" "size" $publish.size "log" false) -}}
{{- end -}}
{{- if and (or $values.ingress.enabled $values.httpRoute.enabled) (not $values.secrets.adminTokens.existingSecret) -}}
{{- fail "secrets.adminTokens.existingSecret: required with ingress or httpRoute, because without a token the page answers nothing" -}}
{{- end -}}
{{- if and (or $values.ingress.enabled $values.httpRoute.enabled) (not (include "spanwise.componentOf" (dict "root" . "role" "publish"))) -}}
{{- fail "scaled.publish.enabled: ingress and httpRoute lead to the page, which role publish has" -}}
{{- end -}}
{{- end }}

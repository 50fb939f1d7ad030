{{- define "guardrail.name" -}}
{{- printf "%s-guardrail" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "guardrail.selector" -}}
app.kubernetes.io/name: kg-guardrail
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "guardrail.labels" -}}
{{ include "guardrail.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

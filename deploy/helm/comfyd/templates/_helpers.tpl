{{- define "comfyd.name" -}}
{{ .Release.Name }}-comfyd
{{- end }}

{{- define "comfyd.selector" -}}
app.kubernetes.io/name: comfyd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "comfyd.labels" -}}
{{ include "comfyd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

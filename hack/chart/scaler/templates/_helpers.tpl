{{- define "scaler.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains "scaler" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-scaler" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "scaler.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "scaler.fullname" . -}}
{{- else -}}
{{- required "serviceAccount.name: want that of one that is there, or serviceAccount.create" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "scaler.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
app.kubernetes.io/name: scaler
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.Version | replace "+" "_" | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "scaler.image" -}}
{{- printf "%s:%s" (required "image.repository: want the repository of scaler's image, as in registry.example/scaler" .Values.image.repository) (.Values.image.tag | default .Chart.Version) -}}
{{- end -}}

{{/* The binding of a role: the service account, and whoever else has it. The argument is the chart, and the suffix of the role. */}}
{{- define "scaler.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "scaler.fullname" .chart }}{{ .suffix }}
  labels:
    {{- include "scaler.labels" .chart | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "scaler.fullname" .chart }}{{ .suffix }}
subjects:
- kind: ServiceAccount
  name: {{ include "scaler.serviceAccount" .chart }}
  namespace: {{ .chart.Release.Namespace }}
{{- with .chart.Values.rbac.subjects }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "scaler.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
  - ALL
{{- end -}}

{{- define "antiphon.labels" -}}
app.kubernetes.io/name: antiphon
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "antiphon.selector" -}}
app.kubernetes.io/name: antiphon
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "antiphon.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What is the same in every pod. */}}
{{- define "antiphon.pod" -}}
serviceAccountName: {{ .Release.Name }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 60
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* What is the same in every container. */}}
{{- define "antiphon.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
startupProbe:
  {{- include "antiphon.probe" . | nindent 2 }}
  periodSeconds: 2
  failureThreshold: 300
readinessProbe:
  {{- include "antiphon.probe" . | nindent 2 }}
  periodSeconds: 5
  timeoutSeconds: 3
livenessProbe:
  {{- include "antiphon.probe" . | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{/* Probes of gRPC can't speak TLS. */}}
{{- define "antiphon.probe" -}}
{{- if .Values.tls.secretName -}}
httpGet:
  path: /readyz
  port: 7702
{{- else -}}
grpc:
  port: 7700
{{- end }}
{{- end }}

{{/* Who may call, and how connections are kept from others. */}}
{{- define "antiphon.accessEnv" -}}
{{- if .Values.tls.secretName }}
- name: ANTIPHON_TLS_CERT_FILE
  value: /etc/antiphon/tls/tls.crt
- name: ANTIPHON_TLS_KEY_FILE
  value: /etc/antiphon/tls/tls.key
- name: ANTIPHON_TLS_CA_FILE
  value: /etc/antiphon/tls/ca.crt
- name: ANTIPHON_TLS_SERVER_NAME
  value: {{ .Values.tls.serverName | quote }}
{{- if .Values.tls.clientCertificates }}
- name: ANTIPHON_TLS_CLIENT_CA_FILE
  value: /etc/antiphon/tls/ca.crt
{{- end }}
# For the probes.
- name: ANTIPHON_METRICS_LISTEN
  value: 0.0.0.0:7702
{{- end }}
{{- if .Values.access.secretName }}
- name: ANTIPHON_ACCESS_TOKENS_FILE
  value: /etc/antiphon/access/tokens.toml
{{- end }}
{{- end }}

{{- define "antiphon.accessMounts" -}}
{{- if .Values.tls.secretName }}
- name: tls
  mountPath: /etc/antiphon/tls
  readOnly: true
{{- end }}
{{- if .Values.access.secretName }}
- name: access
  mountPath: /etc/antiphon/access
  readOnly: true
{{- end }}
{{- end }}

{{- define "antiphon.accessVolumes" -}}
{{- with .Values.tls.secretName }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- with .Values.access.secretName }}
- name: access
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* Environment and ports of a member of a cluster. */}}
{{- define "antiphon.member" -}}
env:
  - name: ANTIPHON_ID
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: POD_IP
    valueFrom:
      fieldRef:
        fieldPath: status.podIP
  - name: ANTIPHON_CLUSTER_GOSSIP_ADVERTISE
    value: $(POD_IP):7701
  - name: ANTIPHON_CLUSTER_ADVERTISE
    value: {{ ternary "https" "http" (ne .Values.tls.secretName "") }}://$(POD_IP):7700
  {{- include "antiphon.accessEnv" . | nindent 2 }}
envFrom:
  - configMapRef:
      name: {{ .Release.Name }}-settings
  {{- with .Values.store.secretName }}
  - secretRef:
      name: {{ . }}
  {{- end }}
ports:
  - name: grpc
    containerPort: 7700
  - name: gossip
    containerPort: 7701
    protocol: UDP
  {{- if .Values.metrics.enabled }}
  - name: metrics
    containerPort: 7702
  {{- end }}
volumeMounts:
  - name: data
    mountPath: /data
  {{- if .Values.cluster.secretName }}
  - name: cluster-secret
    mountPath: /etc/antiphon/cluster
    readOnly: true
  {{- end }}
  {{- include "antiphon.accessMounts" . | nindent 2 }}
{{- end }}

{{- define "antiphon.secretVolume" -}}
{{- with .Values.cluster.secretName }}
- name: cluster-secret
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- include "antiphon.accessVolumes" . }}
{{- end }}

{{/* Takes the root, the component, and what is to happen where hosts are too few. */}}
{{- define "antiphon.spread" -}}
{{- $root := index . 0 -}}
topologySpreadConstraints:
  - topologyKey: topology.kubernetes.io/zone
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "antiphon.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ index . 1 }}
  - topologyKey: kubernetes.io/hostname
    maxSkew: 1
    whenUnsatisfiable: {{ index . 2 }}
    labelSelector:
      matchLabels:
        {{- include "antiphon.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "antiphon.placed" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

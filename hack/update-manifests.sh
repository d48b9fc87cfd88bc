#!/usr/bin/env bash
# Writes pkg/controlplane/istio/manifests/istio.yaml: the output of istioctl of
# the pinned version, unedited. Pass another file to write there instead.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-pkg/controlplane/istio/manifests/istio.yaml}
istioctl=$(go run ./cmd/scaler components path istioctl)
"$istioctl" manifest generate --set profile=minimal --set hub=docker.io/istio --set tag=1.31.0 >"$out"

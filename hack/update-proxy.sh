#!/usr/bin/env bash
# Writes pkg/controlplane/istio/proxy: what an Envoy of the pinned version says of
# itself in its first request, beside what is its workload's. The Envoy is that of
# `scaler components path envoy`; SCALER_ENVOY names another. Pass another folder to
# write there instead.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-pkg/controlplane/istio/proxy}
envoy=$(go run ./cmd/scaler components path envoy)
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
go run ./pkg/controlplane/istio/proxy/generate "$envoy" >"$fresh"
install -m 644 "$fresh" "$out/envoy.json"

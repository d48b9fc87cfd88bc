#!/usr/bin/env bash
# Writes internal/controlplane/istio/proxy: the node that an Envoy of the pinned version
# sends in its first request, without the parts of its workload. The Envoy is that of
# `scaler components path envoy`; SCALER_ENVOY names another. Pass another folder to
# write there instead.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-internal/controlplane/istio/proxy}
envoy=$(${SCALER_E2E_BINARY:-go run ./cmd/scaler} components path envoy)
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
go run ./internal/controlplane/istio/proxy/generate "$envoy" >"$fresh"
install -m 644 "$fresh" "$out/envoy.json"

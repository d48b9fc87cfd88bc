#!/usr/bin/env bash
# Writes pkg/component/manifests: the output of istioctl of the pinned
# version, and Envoy's bootstrap template of its module, both unedited. Pass
# another folder to write there instead.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-pkg/component/manifests}
istioctl=$(go run ./cmd/scaler components path istioctl)
"$istioctl" manifest generate --set profile=minimal --set hub=docker.io/istio --set tag=1.31.0 >"$out/istio.yaml"
pin=$(sed -n 's/^require istio.io\/istio \(v[^ ]*\).*/\1/p; s/^\tistio.io\/istio \(v[^ ]*\).*/\1/p' pkg/component/modules/istio.mod)
module=$(cd / && GOWORK=off GOFLAGS=-mod=mod go mod download -json "istio.io/istio@$pin" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
install -m 644 "$module/tools/packaging/common/envoy_bootstrap.json" "$out/"

#!/usr/bin/env bash
# Writes internal/component/manifests, compressed with gzip and otherwise
# unedited: the output of istioctl of the pinned version, Envoy's bootstrap
# template of its module, and the standard kinds of the Gateway API of the
# version that it requires. Pass another folder to write there instead.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-internal/component/manifests}
compress() { # FILE: the standard input into it, without name and time
  gzip -9 --no-name >"$out/$1.gz"
}
istioctl=$(${SCALER_E2E_BINARY:-go run ./cmd/scaler} components path istioctl)
"$istioctl" manifest generate --set profile=minimal --set hub=docker.io/istio --set tag=1.31.0 | compress istio.yaml
pin=$(sed -n 's/^require istio.io\/istio \(v[^ ]*\).*/\1/p; s/^\tistio.io\/istio \(v[^ ]*\).*/\1/p' internal/component/modules/istio.mod)
folder() { # MODULE VERSION
  (cd / && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$1@$2") | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}
module=$(folder istio.io/istio "$pin")
compress envoy_bootstrap.json <"$module/tools/packaging/common/envoy_bootstrap.json"
gateway=$(sed -n 's/^\tsigs.k8s.io\/gateway-api \(v[^ ]*\).*/\1/p' "$module/go.mod")
for part in "$(folder sigs.k8s.io/gateway-api "$gateway")"/config/crd/standard/*.yaml; do
  echo ---
  cat "$part"
done | compress gateway-api.yaml

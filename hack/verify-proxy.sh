#!/usr/bin/env bash
# Fails when pkg/controlplane/istio/proxy is not what hack/update-proxy.sh would
# write.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/update-proxy.sh "$fresh"
diff -u pkg/controlplane/istio/proxy/envoy.json "$fresh/envoy.json"

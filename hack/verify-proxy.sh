#!/usr/bin/env bash
# Fails when internal/controlplane/istio/proxy is not what hack/update-proxy.sh would
# write.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/update-proxy.sh "$fresh"
diff -u internal/controlplane/istio/proxy/envoy.json "$fresh/envoy.json"

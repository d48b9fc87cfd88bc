#!/usr/bin/env bash
# Fails when pkg/controlplane/istio/manifests/istio.yaml is not what
# hack/update-manifests.sh would write.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
hack/update-manifests.sh "$fresh"
diff -u pkg/controlplane/istio/manifests/istio.yaml "$fresh"

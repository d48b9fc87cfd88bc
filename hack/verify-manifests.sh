#!/usr/bin/env bash
# Fails when pkg/controlplane/istio/manifests is not what
# hack/update-manifests.sh would write.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/update-manifests.sh "$fresh"
diff -ru pkg/controlplane/istio/manifests "$fresh"

#!/usr/bin/env bash
# Fails when internal/component/manifests is not what
# hack/update-manifests.sh would write.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/update-manifests.sh "$fresh"
diff -ru internal/component/manifests "$fresh"

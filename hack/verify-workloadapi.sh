#!/usr/bin/env bash
# Fails when internal/analyse/diff/workloadapi.binpb is not what
# hack/update-workloadapi.sh would write.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
hack/update-workloadapi.sh "$fresh"
cmp internal/analyse/diff/workloadapi.binpb "$fresh"

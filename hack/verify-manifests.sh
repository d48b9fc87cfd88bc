#!/usr/bin/env bash
# Fails when a file of internal/component/manifests, decompressed, has another
# SHA-256 than the one that hack/update-manifests.sh would write from the pinned
# modules.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
digests() { # FOLDER: the SHA-256 of each of its files, decompressed
  (cd "$1" && for file in *; do
    echo "$(gzip -dc "$file" | sha256sum | cut -d' ' -f1)  $file"
  done)
}
hack/update-manifests.sh "$fresh"
diff -u <(digests internal/component/manifests) <(digests "$fresh")

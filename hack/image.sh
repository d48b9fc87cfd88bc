#!/usr/bin/env bash
# Makes the container image of scaler for Linux on amd64 and arm64 with ko, which is built once (half a minute), as an OCI
# layout in a folder:
#
#   hack/image.sh DIR [PLATFORM]
#
# PLATFORM is one alone, as in linux/amd64. No registry is contacted: the base image has no files, and a user that is not
# root. Two runs on one commit make the same image.
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	echo "usage: hack/image.sh DIR [PLATFORM]" >&2
	exit 2
fi
case $1 in /*) out=$1 ;; *) out=$here/$1 ;; esac
platform=${2:-linux/amd64,linux/arm64}
[ ! -e "$out" ] || [ -z "$(ls -A "$out")" ] || {
	echo "hack/image.sh: $out is not empty: name another folder" >&2
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ko looks for base images that are named by a digest in its cache, which is an OCI layout, before it asks a registry.
cache=$work/cache/img
mkdir -p "$cache/blobs/sha256"
printf '{"imageLayoutVersion":"1.0.0"}' >"$cache/oci-layout"

# blob TYPE keeps its input as a blob, and prints what refers to it, without the closing brace.
blob() {
	local file=$work/blob digest
	cat >"$file"
	digest=$(sha256sum "$file" | cut -d' ' -f1)
	printf '{"mediaType":"application/vnd.oci.image.%s+json","size":%d,"digest":"sha256:%s"' "$1" "$(stat -c %s "$file")" "$digest"
	mv "$file" "$cache/blobs/sha256/$digest"
}

manifests=
for arch in amd64 arm64; do
	config=$(printf '{"architecture":"%s","os":"linux","config":{"User":"65532:65532","WorkingDir":"/"},"rootfs":{"type":"layers","diff_ids":[]}}' "$arch" | blob config.v1)
	manifest=$(printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s},"layers":[]}' "$config" | blob manifest.v1)
	manifests+=${manifests:+,}$(printf '%s,"platform":{"architecture":"%s","os":"linux"}}' "$manifest" "$arch")
done
index=$(printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}' "$manifests" | blob index.v1)
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s,%s}]}' "$manifests" "$index" >"$cache/index.json"
base=scaler.mesh/base@$(sed 's/.*"digest":"\([^"]*\)".*/\1/' <<<"$index")

CGO_ENABLED=0 go build -trimpath -modfile=hack/ko/go.mod -o "$work/ko" github.com/google/ko
KOCACHE=$work/cache KO_DEFAULTBASEIMAGE=$base SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) \
	"$work/ko" build --bare --push=false --sbom=none --platform="$platform" --oci-layout-path="$out" ./cmd/scaler >&2
echo "$out"

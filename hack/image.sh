#!/usr/bin/env bash
# Makes the container image of scaler for Linux on amd64 and arm64 with ko, which is built once (half a minute), as an OCI
# layout in a folder:
#
#   hack/image.sh [--bundle] DIR [PLATFORM]
#
# PLATFORM is one alone, as in linux/amd64. No registry is contacted for the base image, which has no files, and a user
# that is not root. Two runs on one commit make the same image.
#
# With --bundle the image, for the platform of this machine, also has the programs of a rollout, from scaler's cache, into
# which those that are missing come first. Its label mesh.scaler.programs lists them.
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."

bundle=
if [ "${1:-}" = --bundle ]; then
	bundle=yes
	shift
fi
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	echo "usage: hack/image.sh [--bundle] DIR [PLATFORM]" >&2
	exit 2
fi
case $1 in /*) out=$1 ;; *) out=$here/$1 ;; esac
platform=${2:-linux/amd64,linux/arm64}
if [ -n "$bundle" ]; then
	platform=linux/$(go env GOHOSTARCH)
	[ "${2:-$platform}" = "$platform" ] || {
		echo "hack/image.sh: PLATFORM: got $2, want $platform with --bundle: the programs are those of this machine" >&2
		exit 2
	}
fi
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
	printf '{"mediaType":"application/vnd.oci.image.%s","size":%d,"digest":"sha256:%s"' "$1" "$(stat -c %s "$file")" "$digest"
	mv "$file" "$cache/blobs/sha256/$digest"
}

architectures='amd64 arm64' settings='"WorkingDir":"/"' layers= contents=
if [ -n "$bundle" ]; then
	CGO_ENABLED=0 go build -trimpath -o "$work/scaler" ./cmd/scaler
	mkdir -p "$work/files/programs" "$work/files/tmp" "$work/files/data"
	architectures=${platform#linux/} listed=
	for name in etcd kube-apiserver kube-controller-manager kube-scheduler kwok istiod prometheus; do
		cp -L "$("$work/scaler" components path "$name")" "$work/files/programs/$name"
		version=$("$work/scaler" components list | awk -v name="$name" '$1 == name {print $2}')
		digest=$(sha256sum "$work/files/programs/$name")
		listed+="${listed:+, }$name $version sha256:${digest%% *}"
	done
	chmod -R u=rwX,go=rX "$work/files"
	chmod 1777 "$work/files/tmp" "$work/files/data"
	tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$work/files" -cf "$work/layer" data programs tmp
	contents=\"sha256:$(sha256sum "$work/layer" | cut -d' ' -f1)\"
	layers=$(gzip -n <"$work/layer" | blob layer.v1.tar+gzip)}
	settings='"WorkingDir":"/data","Env":["HOME=/data","SCALER_BIN_DIR=/programs"],"Labels":{"mesh.scaler.programs":"'$listed'"}'
fi
manifests=
for arch in $architectures; do
	config=$(printf '{"architecture":"%s","os":"linux","config":{"User":"65532:65532",%s},"rootfs":{"type":"layers","diff_ids":[%s]}}' "$arch" "$settings" "$contents" | blob config.v1+json)
	manifest=$(printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s},"layers":[%s]}' "$config" "$layers" | blob manifest.v1+json)
	manifests+=${manifests:+,}$(printf '%s,"platform":{"architecture":"%s","os":"linux"}}' "$manifest" "$arch")
done
index=$(printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}' "$manifests" | blob index.v1+json)
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s,%s}]}' "$manifests" "$index" >"$cache/index.json"
base=scaler.mesh/base@$(sed 's/.*"digest":"\([^"]*\)".*/\1/' <<<"$index")

CGO_ENABLED=0 go build -trimpath -modfile=hack/ko/go.mod -o "$work/ko" github.com/google/ko
KOCACHE=$work/cache KO_DEFAULTBASEIMAGE=$base SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) \
	"$work/ko" build --bare --push=false --sbom=none --platform="$platform" --oci-layout-path="$out" ./cmd/scaler >&2
echo "$out"

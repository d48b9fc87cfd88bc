#!/usr/bin/env bash
# Makes the files of a release of the commit that is checked out, which has a tag:
#
#   hack/release.sh DIR
#
# For each platform an archive with scaler, its name as a plugin of kubectl, shell completion,
# licence and README; its bill of materials (CycloneDX); the Helm chart; and SHA256SUMS of them all.
# For macOS scaler only reads records.
# The archives of one commit are the same byte for byte, wherever they are made.
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."

fail() {
	echo "hack/release.sh: $1" >&2
	exit 1
}

if [ $# -ne 1 ]; then
	echo "usage: hack/release.sh DIR" >&2
	exit 2
fi
case $1 in /*) out=$1 ;; *) out=$here/$1 ;; esac
[ -z "$(git status --porcelain)" ] || fail "the work tree has changes: commit or remove them, so that the release is of a commit"
version=$(git describe --exact-match --tags --match 'v[0-9]*' 2>/dev/null) || fail "HEAD has no tag of a version: git tag v1.2.3"
[ ! -e "$out" ] || [ -z "$(ls -A "$out")" ] || fail "$out is not empty: name another folder"
mkdir -p "$out"

# archive NAME FILE packs $work/NAME, as of the commit and whatever the umask is.
archive() {
	tar --sort=name --mtime="$stamp" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$work" -c "$1" | gzip -n >"$2"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stamp=$(git log -1 --format=%cI)

export CGO_ENABLED=0
go build -trimpath -o "$work/host/scaler" ./cmd/scaler
for platform in linux-amd64 linux-arm64 darwin-amd64 darwin-arm64; do
	name=scaler-$version-$platform
	mkdir -p "$work/$name/completion"
	GOOS=${platform%-*} GOARCH=${platform#*-} go build -trimpath -buildvcs=true -ldflags='-s -w' -o "$work/$name/scaler" ./cmd/scaler
	go version -m "$work/$name/scaler" | grep -q "^	mod	scaler.mesh/scaler	$version\b" ||
		fail "go recorded another version than $version in the program: make the release in a clone, not in a further work tree"
	# kubectl finds its plugins by name: kubectl mesh-scaler.
	ln -s scaler "$work/$name/kubectl-mesh_scaler"
	printf '#!/bin/sh\nexec kubectl mesh-scaler __complete "$@"\n' >"$work/$name/kubectl_complete-mesh_scaler"
	chmod +x "$work/$name/kubectl_complete-mesh_scaler"
	for shell in bash zsh fish; do
		"$work/host/scaler" completion "$shell" >"$work/$name/completion/scaler.$shell"
	done
	cp README.md LICENSE "$work/$name"
	archive "$name" "$out/$name.tar.gz"
	go tool -modfile=hack/sbom/go.mod cyclonedx-gomod bin -json -std -noserial -notimestamp \
		-version "$version" -output "$out/$name.cdx.json" "$work/$name/scaler"
done
# As helm package makes it; versions of charts have no v.
cp -r hack/chart/scaler "$work/scaler"
sed -i "s/^version: .*/version: ${version#v}/" "$work/scaler/Chart.yaml"
archive scaler "$out/scaler-chart-${version#v}.tgz"
(cd "$out" && sha256sum -- *.tar.gz *.tgz *.cdx.json >SHA256SUMS)
echo "$version: $out" >&2

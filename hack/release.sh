#!/usr/bin/env bash
# Makes the files of a release of the commit that is checked out, which has a tag:
#
#   hack/release.sh DIR [URL]
#
# For each platform an archive with scaler, its name as a plugin of kubectl, shell completion,
# licence and README; its bill of materials (CycloneDX); the Helm chart; and SHA256SUMS of them all.
# For macOS scaler only reads records. With URL, the folder that the archives will be downloaded from, also a manifest for
# krew and a formula for Homebrew (hack/release). With SCALER_RELEASE_KEY, the file of a secret key of minisign, SHA256SUMS
# is signed.
# The archives of one commit are the same byte for byte, wherever they are made.
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."

fail() {
	echo "hack/release.sh: $1" >&2
	exit 1
}

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	echo "usage: hack/release.sh DIR [URL]" >&2
	exit 2
fi
url=${2:-}
[[ -z $url || $url =~ ^https://[A-Za-z0-9._~%:-]+(/[A-Za-z0-9._~%-]+)*$ ]] || {
	echo "hack/release.sh: URL: got $url, want one that begins with https:// and does not end with /, as in https://downloads.example/scaler/v1.2.3" >&2
	exit 2
}
case $1 in /*) out=$1 ;; *) out=$here/$1 ;; esac
[ -z "$(git status --porcelain)" ] || fail "the work tree has changes: commit or remove them, so that the release is of a commit"
version=$(git describe --exact-match --tags --match 'v[0-9]*' 2>/dev/null) || fail "HEAD has no tag of a version: git tag v1.2.3"
[ ! -e "$out" ] || [ -z "$(ls -A "$out")" ] || fail "$out is not empty: name another folder"
key=${SCALER_RELEASE_KEY:-}
case $key in '' | /*) ;; *) key=$here/$key ;; esac
[ -z "$key" ] || [ -f "$key" ] || fail "SCALER_RELEASE_KEY: got $key, want the file of a secret key, as minisign -G makes it"
mkdir -p "$out"

# archive NAME FILE packs $work/NAME, as of the commit and whatever the umask is.
archive() {
	tar --sort=name --mtime="$stamp" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$work" -c "$1" | gzip -n >"$2"
}

# fill TEMPLATE fills in the version, the URL and the checksums of the archives in $out.
fill() {
	local rules=(-e "s|{{version}}|$version|g" -e "s|{{number}}|${version#v}|g" -e "s|{{url}}|$url|g") file platform digest
	for file in "$out"/scaler-"$version"-*.tar.gz; do
		platform=${file##*/scaler-"$version"-}
		digest=$(sha256sum "$file")
		rules+=(-e "s|{{sha256 ${platform%.tar.gz}}}|${digest%% *}|")
	done
	sed -e '/^# .* hack\/release.sh fills in/d' "${rules[@]}" "$1"
}

# sign FILE makes FILE.minisig with the secret key $key. It asks for a password if the key has one.
sign() {
	go tool -modfile=hack/minisign/go.mod minisign -S -s "$key" -t "scaler $version" -m "$1"
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
	# As a plugin of kubectl, kubectl mesh-scaler, it has to be found as kubectl-mesh_scaler. The archive has no link of
	# that name: krew takes no links, and makes its own.
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
if [ -n "$url" ]; then
	for template in mesh-scaler.yaml scaler.rb; do
		fill "hack/release/$template" >"$out/$template"
	done
fi
(cd "$out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
[ -z "$key" ] || sign "$out/SHA256SUMS"
echo "$version: $out" >&2

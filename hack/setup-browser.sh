#!/usr/bin/env bash
# Prepares what test/browser needs and prints where it is, a path a line: Chromium,
# the distribution's, and axe-core, which checks whether a page can be used by
# everybody. axe-core is MPL-2.0: it is fetched as it is, kept in scaler's cache, and
# no part of this project. What is missing is installed with apt-get by root; others
# are listed with what to install.
set -euo pipefail

axe=4.10.3
digest=880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb # of axe.min.js

# need installs a package unless its program is there.
need() {
	local program=$1 package=$2
	if command -v "$program" >/dev/null; then
		return
	fi
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		echo "the browser tests need $program, and only root with apt-get can install it here: install $package" >&2
		exit 1
	fi
	echo "installing $package" >&2
	export DEBIAN_FRONTEND=noninteractive
	timeout 120 apt-get update -qq >&2
	timeout 300 apt-get install -qq -y --no-install-recommends "$package" >&2
}

need chromium chromium

folder=${SCALER_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/scaler}/axe-core-$axe
file=$folder/axe.min.js
if ! echo "$digest  $file" | sha256sum --check --status 2>/dev/null; then
	need npm npm
	echo "fetching axe-core $axe" >&2
	mkdir -p "$folder"
	scratch=$(mktemp -d "$folder/fetch.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	(cd "$scratch" && timeout 120 npm pack --silent "axe-core@$axe" >/dev/null && tar xzf axe-core-*.tgz package/axe.min.js package/LICENSE)
	if ! echo "$digest  $scratch/package/axe.min.js" | sha256sum --check --status; then
		echo "axe-core $axe is not what it was: want the SHA-256 digest $digest" >&2
		exit 1
	fi
	mv "$scratch/package/LICENSE" "$folder/LICENSE"
	mv "$scratch/package/axe.min.js" "$file"
fi

command -v chromium
echo "$file"

#!/usr/bin/env bash
# Writes pkg/controlplane/istio/testdata/*/*.tsv anew: what a real istiod sends the
# sidecars of each service, resource by resource, in bytes. A file's name holds the
# run's services and knobs; the meshes are those of size_test.go. Records hold only
# means, so a scaler is built that prints each size. It makes a run for each file,
# one after the other. There is nothing that verifies the files byte for byte:
# addresses, which are of other lengths in each run, are in the sizes;
# TestSizesAsMeasured allows for that. Pass files to write only these.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The place where every sidecar that has converged is asked for what it holds.
source=pkg/rollout/holdings.go
sed -e 's|^\(\t*\)held\[resource.Key\] = true$|&\n\1fmt.Printf("SIZE\\t%s\\t%s\\t%d\\n", p.service, resource.Key, resource.Size)|' "$source" >"$scratch/holdings.go"
if cmp -s "$source" "$scratch/holdings.go"; then
	echo "$source asks sidecars elsewhere for what they hold; mend this script" >&2
	exit 1
fi
printf '{"Replace": {"%s": "%s"}}\n' "$PWD/$source" "$scratch/holdings.go" >"$scratch/overlay.json"
go build -overlay "$scratch/overlay.json" -o "$scratch/scaler" ./cmd/scaler

# merge takes SERVICE, RESOURCE, BYTES of every sidecar, and writes those lines once:
# with * for the services where all that were sent a resource were sent the same.
merge() {
	LC_ALL=C sort -t $'\t' -u -k2,2 -k1,1 | awk -F '\t' '
		function flush(    i) {
			for (i = 1; i <= n; i++) {
				print (alike ? "*" : service[i]) "\t" key "\t" bytes[i]
				if (alike) break
			}
		}
		$2 != key { flush(); key = $2; n = 0; alike = 1 }
		{ service[++n] = $1; bytes[n] = $3; alike = alike && $3 == bytes[1] }
		END { flush() }'
}

[ $# -gt 0 ] || set -- pkg/controlplane/istio/testdata/*/*.tsv
for file in "$@"; do
	IFS=- read -r services mtls scope authz <<<"$(basename "$file" .tsv)"
	case $services in
	14) mesh=(--pods 40 --services 14 --namespaces 2 --fanout 3) ;;
	24) mesh=(--pods 48 --services 24 --namespaces 12 --fanout 4) ;;
	*) echo "$file: want 14 or 24 services" >&2 && exit 1 ;;
	esac
	# With a real sidecar istiod has the settings that an upstream Envoy needs.
	real=0
	[ "$(basename "$(dirname "$file")")" != upstream ] || real=1
	echo "$file" >&2
	"$scratch/scaler" rollout "${mesh[@]}" --topology random --seed 1 --mtls "$mtls" --scope "$scope" --authz "$authz" --real-sidecars "$real" \
		--no-calibrate --baseline 1s --steady 1s --probes 0 --out "$scratch/run" >"$scratch/out" 2>"$scratch/log" || { cat "$scratch/log" >&2; exit 1; }
	sed -n 's/^SIZE\t//p' "$scratch/out" | merge >"$scratch/sizes"
	[ -s "$scratch/sizes" ]
	install -m 644 "$scratch/sizes" "$file"
	rm -rf "$scratch/run"
done

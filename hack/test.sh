#!/usr/bin/env bash
# The tests, from the quickest to those that start the real programs, until one
# fails. The programs are built into scaler's cache first, which takes about 20
# minutes once. With --all also the acceptance specs of test/e2e: those that
# compare several runs or take long. Run them before a release.
set -euo pipefail
specs=(-label-filter '!acceptance')
case ${1:-} in
'') ;;
--all) specs=() ;;
*)
	echo "hack/test.sh: argument \"$1\": want --all or nothing" >&2
	exit 2
	;;
esac
cd "$(dirname "$0")/.."

# Go's build cache then serves checkouts in other folders, too, and shares what scaler and its
# components have in common.
export GOFLAGS="${GOFLAGS:-} -trimpath"

# As scaler is released and as it builds its components: what they have in common is compiled once.
export CGO_ENABLED=0

# What is tested is what is built here: no registry is contacted.
export SCALER_IMAGE_REGISTRY=none

log=$(mktemp)
programs=$(mktemp -d)
finish() {
	status=$?
	# Packages, as go and ginkgo print them.
	passed=$(grep -cE '^(ok[[:space:]]|Test Suite Passed)' "$log" || true)
	failed=$(grep -cE '^(FAIL[[:space:]]+[^[:space:]]|Test Suite Failed)' "$log" || true)
	rm -rf "$log" "$programs"
	if [ "$status" -ne 0 ]; then
		echo "hack/test.sh: FAILED at: ${current:-start}"
	fi
	echo "$passed passed, $failed failed"
}
trap finish EXIT

# step runs a command under a headline, states how long it took, and keeps its output for the count.
step() {
	local began=$SECONDS
	current=$*
	echo "== $current"
	"$@" 2>&1 | tee -a "$log"
	echo "== took $((SECONDS - began)) s"
}

# Packages that start goroutines or are called by several. Their tests run once, with the race detector.
concurrent=(
	./internal/calibrate ./internal/cluster ./internal/component/... ./internal/controlplane
	./internal/controlplane/{authority,external,istio,linkerd/linkerdproxy,reference/...} ./internal/dataplane
	./internal/fidelity ./internal/fleet ./internal/forward ./internal/latency ./internal/loadagent ./internal/measure/... ./internal/observe
	./internal/onecall ./internal/place/existing ./internal/process ./internal/run/... ./internal/sidecar ./internal/worker
	./internal/workload ./internal/xdsload ./internal/ztunnel ./pkg/convergence ./pkg/record ./pkg/xdsprobe/...
)
if ! command -v "$(go env CC)" >/dev/null; then
	echo "== LEFT OUT: the race detector, which needs a C compiler; there is no $(go env CC)"
	concurrent=()
fi
# Without -short pkg/xdsprobe tries ten times as many random sequences, which takes long with the race detector.
mapfile -t single < <(go list ./... | grep -vFxf <(go list "${concurrent[@]:-unsafe}"))
single+=(./pkg/xdsprobe)

# Other packages with specs that start real programs, because these need unexported names or a browser.
mapfile -t suites < <(grep -rlE --include='*_test.go' '^//go:build e2e' . | xargs -n1 dirname | sort -u | grep -vFx ./test/e2e)

# Files of the pinned release of Istio are what capture is tested with, see test/corpus.
step go mod download -modfile=internal/component/modules/istio.mod istio.io/istio
export SCALER_CORPUS_REQUIRED=1

# All of go vet is part of each test. Without what debuggers read, which no test does, a test is linked in three quarters of the time.
step go test -vet=all -ldflags=-w "${single[@]}"
if [ ${#concurrent[@]} -gt 0 ]; then
	step env CGO_ENABLED=1 go test -vet=all -ldflags=-w -race -short "${concurrent[@]}"
fi
step go -C hack/opinions vet ./...
# Linked once, for all that starts scaler from here on. Go's cache would keep what "go run" links.
export SCALER_E2E_BINARY=$programs/scaler
step go build -o "$SCALER_E2E_BINARY" ./cmd/scaler
step "$SCALER_E2E_BINARY" components build
# Four at a time on two processors, because specs mostly wait.
step go tool ginkgo -tags e2e -vet=all -procs 4 -timeout 40m -poll-progress-after 2m -no-color "${specs[@]}" ./test/e2e
step go test -tags e2e -vet=all -ldflags=-w -count=1 -timeout 40m "${suites[@]}" -ginkgo.label-filter=e2e
for verify in hack/verify-*.sh; do
	step "$verify"
done
current=

#!/usr/bin/env bash
# All tests, from the quickest to those that start the real programs, until one
# fails. The programs are built into scaler's cache first, which takes about 20
# minutes once.
set -euo pipefail
cd "$(dirname "$0")/.."

# Go's build cache then serves checkouts in other folders, too, and shares what scaler and its
# components have in common.
export GOFLAGS="${GOFLAGS:-} -trimpath"

# What is tested is what is built here: no registry is contacted.
export SCALER_IMAGE_REGISTRY=none

log=$(mktemp)
finish() {
	status=$?
	# Packages, as go and ginkgo print them.
	passed=$(grep -cE '^(ok[[:space:]]|Test Suite Passed)' "$log" || true)
	failed=$(grep -cE '^(FAIL[[:space:]]+[^[:space:]]|Test Suite Failed)' "$log" || true)
	rm -f "$log"
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

# Where goroutines share data.
concurrent="./internal/onecall ./internal/process ./internal/calibrate ./internal/component ./internal/controlplane/... ./pkg/convergence
	./internal/experiment ./internal/fleet ./internal/fidelity ./internal/latency ./internal/run ./internal/xdsload
	./internal/dataplane ./internal/grafana ./internal/observe ./pkg/record ./internal/measure ./internal/worker ./internal/workload ./internal/sidecar ./internal/analyse/stats
	./pkg/xdsprobe/..."

# Packages with suites that start the real programs. Three run at a time, because they mostly
# wait; test/robust, the longest, is the first. Specs of test/e2e run in parallel among themselves.
suites=$(grep -rlE --include='*_test.go' '^//go:build e2e' . | xargs -n1 dirname | sort -ru | grep -vFx ./test/e2e)

step go vet -tags e2e ./... # no file has a tag that excludes e2e
step go -C hack/opinions vet ./...
step hack/lint.sh
step go test ./...
# shellcheck disable=SC2086
if command -v "$(go env CC)" >/dev/null; then
	step env CGO_ENABLED=1 go test -race -short $concurrent
else
	echo "== LEFT OUT: go test -race, which needs a C compiler; there is no $(go env CC)"
fi
step go run ./cmd/scaler components build
# shellcheck disable=SC2086
step go test -tags e2e -p 3 -count=1 -timeout 40m $suites
step go tool ginkgo -tags e2e -procs 3 -timeout 40m -poll-progress-after 2m -no-color ./test/e2e
for verify in hack/verify-*.sh; do
	step "$verify"
done
current=

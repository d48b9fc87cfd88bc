#!/usr/bin/env bash
# Runs all tests: vet, the unit tests, the race detector, the suites that start
# the real programs (built first, if they are not there yet), and the checks of
# generated files. The first failure ends it. The last line counts packages.
set -euo pipefail
cd "$(dirname "$0")/.."

results=$(mktemp)
trap 'rm -f "$results"' EXIT

say() { printf '\n=== %s (%s)\n' "$*" "$(date +%T)"; }

# run prints what a go test prints and keeps its lines for the count.
run() { "$@" 2>&1 | tee -a "$results"; }

say "vet"
go vet ./...
go vet -tags e2e ./...

say "unit tests"
run go test ./...

# Where goroutines meet. The race detector needs a C compiler.
if command -v "$(go env CC)" >/dev/null; then
	say "race detector"
	run env CGO_ENABLED=1 go test -race -short -timeout 15m \
		./internal/process ./pkg/component ./pkg/convergence ./pkg/observe ./pkg/record \
		./pkg/recorder ./pkg/rollout ./pkg/stats ./pkg/experiment ./pkg/xdsprobe
else
	say "race detector: left out, there is no C compiler ($(go env CC))"
fi

say "programs"
go run ./cmd/scaler components build

# One package at a time: each starts clusters of its own.
say "suites with the real programs"
run go test -tags e2e -count 1 -p 1 -timeout 40m ./test/... ./pkg/cluster ./pkg/recorder ./pkg/controlplane/...

say "generated files"
hack/verify-modules.sh
hack/verify-manifests.sh

passed=$(grep -c '^ok' "$results" || true)
failed=$(grep -c '^FAIL.*[[:space:]]' "$results" || true)
printf '\n%d passed, %d failed\n' "$passed" "$failed"

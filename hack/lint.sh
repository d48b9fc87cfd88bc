#!/bin/sh
# Runs the linters of .golangci.yml, which is part of continuous integration (.ci/run) and not of hack/test.sh.
# golangci-lint is built from the versions that hack/golangci/go.mod pins, into Go's build cache: a few minutes once.
set -eu
cd "$(dirname "$0")/.."

# As in hack/test.sh: what both compile is compiled once.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath"
exec go tool -modfile=hack/golangci/go.mod golangci-lint run "$@"

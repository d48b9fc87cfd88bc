#!/bin/sh
# Runs the linters of .golangci.yml. golangci-lint is built from the versions that
# hack/golangci/go.mod pins, into Go's build cache: a few minutes once.
set -eu
cd "$(dirname "$0")/.."
exec go tool -modfile=hack/golangci/go.mod golangci-lint run "$@"

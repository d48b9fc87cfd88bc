#!/bin/sh
# Checks that the generated documents are what hack/update-docs.sh writes.
set -eu
cd "$(dirname "$0")/.."
exec go test ./cmd/scaler -count=1 -run '^TestCommandLineReference$'

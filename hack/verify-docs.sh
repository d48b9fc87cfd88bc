#!/bin/sh
# Checks that the generated documents are what hack/update-docs.sh writes.
set -eu
cd "$(dirname "$0")/.."
go test ./internal/cli -count=1 -run '^Test(CommandLine|Scenario)Reference$'
exec go test ./pkg/record -count=1 -run '^Test(Figures|Events)Document$'

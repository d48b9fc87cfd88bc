#!/bin/sh
# Writes the generated documents anew: the command line reference
# (docs/reference/command-line) from the commands' help in internal/cli, the
# reference and the JSON Schema of scenarios (docs/reference) from pkg/scenario, and
# the lists of figures and events (docs/reference) from pkg/record.
set -eu
cd "$(dirname "$0")/.."
go test ./internal/cli -count=1 -run '^Test(CommandLine|Scenario)Reference$' -args -update-docs
exec go test ./pkg/record -count=1 -run '^Test(Figures|Events)Document$' -args -update

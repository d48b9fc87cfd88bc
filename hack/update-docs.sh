#!/bin/sh
# Writes the generated documents: the command line reference
# (docs/reference/command-line) from the commands' help in cmd/scaler.
set -eu
cd "$(dirname "$0")/.."
exec go test ./cmd/scaler -count=1 -run '^TestCommandLineReference$' -args -update-docs

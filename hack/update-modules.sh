#!/bin/sh
# Rewrites the .sum files of the embedded module graphs (internal/component/modules and
# test/realnode/nodeprograms/modules) after a .mod file was changed by hand. The versions that are
# reported are in programs.go and nodeprograms.go.
set -eu
cd "$(dirname "$0")/.."
exec go test ./internal/component ./test/realnode/nodeprograms -count=1 -run '^(TestModuleFiles|TestPinned)$' -modules=update

#!/bin/sh
# Rewrites the .sum files of the embedded module graphs (internal/component/modules) after a .mod file
# was changed by hand. The versions that internal/component reports are in programs.go.
set -eu
cd "$(dirname "$0")/.."
exec go test ./internal/component -count=1 -run '^(TestModuleFiles|TestPinned)$' -modules=update

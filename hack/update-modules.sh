#!/bin/sh
# Rewrites the .sum files of the embedded module graphs (pkg/component/modules) after a .mod file
# was changed by hand. The versions that pkg/component reports are in programs.go.
set -eu
cd "$(dirname "$0")/.."
exec go test ./pkg/component -count=1 -run '^(TestModuleFiles|TestPinned)$' -modules=update

#!/bin/sh
# Checks that the embedded module graphs (pkg/component/modules) are complete and that every
# program is found in them. hack/update-modules.sh rewrites them.
set -eu
cd "$(dirname "$0")/.."
exec go test ./pkg/component -count=1 -run '^(TestModuleFiles|TestPinned)$' -modules=verify

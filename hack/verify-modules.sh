#!/bin/sh
# Checks that the embedded module graphs (internal/component/modules and
# test/realnode/nodeprograms/modules) are complete and that every program is found in them.
# hack/update-modules.sh rewrites them.
set -eu
cd "$(dirname "$0")/.."
exec go test ./internal/component ./test/realnode/nodeprograms -count=1 -run '^(TestModuleFiles|TestPinned)$' -modules=verify

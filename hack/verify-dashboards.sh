#!/bin/sh
# Checks that the committed Grafana dashboards (dashboards/json) are what their generator writes.
# hack/update-dashboards.sh rewrites them.
set -eu
cd "$(dirname "$0")/.."
exec go test ./dashboards -count=1 -run '^TestGenerated$'

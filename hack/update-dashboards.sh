#!/bin/sh
# Writes the committed Grafana dashboards (dashboards/json) from their generator
# (dashboards/generate).
set -eu
cd "$(dirname "$0")/.."
exec go test ./dashboards -count=1 -run '^TestGenerated$' -update

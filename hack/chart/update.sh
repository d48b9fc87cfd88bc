#!/usr/bin/env bash
# Renders the chart with Helm itself, for each testdata/NAME.values.yaml into NAME.yaml, and has Helm check the chart and
# the schema of its values. Helm is built from the version that hack/helm/go.mod pins, into Go's build cache: one to two
# minutes once. The tests of hack compare the files with the chart without Helm.
set -euo pipefail
cd "$(dirname "$0")/../.."

helm=$(mktemp)
trap 'rm -f "$helm"' EXIT
CGO_ENABLED=0 go build -trimpath -modfile=hack/helm/go.mod -o "$helm" helm.sh/helm/v3/cmd/helm
# Helm that is built so takes the cluster to be older than the chart allows.
kubernetes=(--kube-version 1.36.3)
"$helm" lint --strict hack/chart/scaler "${kubernetes[@]}" >&2
for values in hack/chart/testdata/*.values.yaml; do
	"$helm" template scaler hack/chart/scaler --namespace scaler "${kubernetes[@]}" --values "$values" >"${values%.values.yaml}.yaml"
done
# What the schema is to refuse.
for wrong in rollout.pods='{1,2}' rollout.pods=0 image.pullPolicy=Sometimes rollout.unknown=true rbac.subjects='{a}' rollout.extraArgs='{steady}'; do
	if "$helm" template scaler hack/chart/scaler "${kubernetes[@]}" --set "$wrong" >/dev/null 2>&1; then
		echo "hack/chart/update.sh: the schema accepts $wrong" >&2
		exit 1
	fi
done

package experiment

import (
	"context"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/record"
)

// ClusterVersions are those that a cluster's programs report; programs are their
// paths.
func ClusterVersions(ctx context.Context, versions *component.Versions, programs map[string]string) (kubernetes, kwok string, err error) {
	server, err := versions.Of(ctx, component.KubeAPIServer, programs[component.KubeAPIServer])
	if err != nil {
		return "", "", err
	}
	nodes, err := versions.Of(ctx, component.Kwok, programs[component.Kwok])
	return server.Version, nodes.Version, err
}

// VersionDoubt warns of a control plane of a version that its adapter has no
// expectations for; nil of one that it has.
func VersionDoubt(d controlplane.Description) *record.Warning {
	if d.Unchecked == "" {
		return nil
	}
	return &record.Warning{
		About: "environment.controlPlane.version", Reason: record.ReasonVersionUnknown,
		Component: d.Name + " " + d.Version, Detail: d.Unchecked,
	}
}

package component

import (
	"context"
	"fmt"

	"scaler.mesh/scaler/pkg/record"
)

// ProgramOrigins returns where programs are from, as the record has it; paths says by
// name where each is.
func ProgramOrigins(options Options, paths map[string]string) (map[string]record.Program, error) {
	all := map[string]record.Program{}
	for name, path := range paths {
		if name == IstioManifests {
			continue // a folder
		}
		origin, err := OriginOf(options, path)
		if err != nil {
			return nil, fmt.Errorf("finding where %s is from: %w", name, err)
		}
		source := origin.Source
		if source == SourceBinDir {
			source = "given"
		}
		all[name] = record.Program{Source: source, Image: origin.Image, Digest: origin.Digest}
	}
	return all, nil
}

// ClusterVersions returns the versions that a cluster's programs report; programs are their
// paths.
func ClusterVersions(ctx context.Context, versions *Versions, programs map[string]string) (kubernetes, kwok string, err error) {
	server, err := versions.Of(ctx, KubeAPIServer, programs[KubeAPIServer])
	if err != nil {
		return "", "", err
	}
	nodes, err := versions.Of(ctx, Kwok, programs[Kwok])
	return server.Version, nodes.Version, err
}

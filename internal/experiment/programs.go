package experiment

import (
	"context"
	"fmt"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/pkg/record"
)

// ClusterComponents are the names of the programs that an embedded cluster takes.
func ClusterComponents() []string {
	return []string{component.Etcd, component.KubeAPIServer, component.KubeControllerManager, component.KubeScheduler, component.Kwok}
}

// ClusterPrograms are the programs of ClusterComponents, of which paths says by name
// where each is.
func ClusterPrograms(paths map[string]string) cluster.Programs {
	return cluster.Programs{
		Etcd:              paths[component.Etcd],
		APIServer:         paths[component.KubeAPIServer],
		ControllerManager: paths[component.KubeControllerManager],
		Scheduler:         paths[component.KubeScheduler],
		Kwok:              paths[component.Kwok],
	}
}

// RunPrograms are the names of the programs that a run against a control plane
// starts: cluster, control plane and Prometheus.
func RunPrograms(d controlplane.Driver) []string {
	return append(append(ClusterComponents(), component.Prometheus), d.Programs.Own...)
}

// ProgramOrigins is where programs are from, as the record has it; paths says by
// name where each is.
func ProgramOrigins(options component.Options, paths map[string]string) (map[string]record.Program, error) {
	all := map[string]record.Program{}
	for name, path := range paths {
		if name == component.IstioManifests {
			continue // a folder
		}
		origin, err := component.OriginOf(options, path)
		if err != nil {
			return nil, fmt.Errorf("finding where %s is from: %w", name, err)
		}
		source := origin.Source
		if source == component.SourceBinDir {
			source = "given"
		}
		all[name] = record.Program{Source: source, Image: origin.Image, Digest: origin.Digest}
	}
	return all, nil
}

// SidecarPrograms finds the programs of real sidecars of a control plane's mesh.
func SidecarPrograms(ctx context.Context, programs component.Options, d controlplane.Driver) ([]doctor.Program, error) {
	var all []doctor.Program
	for _, name := range d.SidecarPrograms {
		st, err := component.Find(ctx, programs, name)
		if err != nil {
			return nil, err
		}
		p := doctor.Program{Name: name, Path: st.Path, Problem: st.Problem, Pip: st.Source == component.SourcePip}
		if p.Pip {
			if err := component.CheckPip(ctx); err != nil {
				p.Problem = "is not there and cannot be installed: " + FirstLine(err)
			}
		}
		all = append(all, p)
	}
	return all, ctx.Err()
}

package run

import (
	"context"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/internal/output"
)

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
				p.Problem = "is missing and cannot be installed: " + output.FirstLine(err)
			}
		}
		all = append(all, p)
	}
	return all, ctx.Err()
}

package sweep

import (
	"fmt"
	"strings"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/scenario"
)

// priced are the figures that parts of a mesh are judged by.
var priced = []string{
	"controlPlane.rollout.memoryBytes.peak", "controlPlane.steady.heapBytes.collected",
	"controlPlane.rollout.cpuSeconds", "controlPlane.steady.cpuSeconds",
	"xds.perSidecar.bytes", "xds.configurationBytes.mean",
	"latencies.completeConfiguration.p99",
}

// Knobs returns a sweep of the parts of a mesh's profile: the base is the plain mesh, and each
// variant has one part of the profile. What several parts cost only together is not found.
func Knobs(spec run.Spec) (Options, error) {
	o := Options{Kind: "KnobSweep", File: "knobs.json", What: "with", Base: topology.Plain, Spec: spec, Figures: priced, Conclude: price}
	profile := spec.Profile()
	o.Spec.Mesh.Profile, o.Spec.Mesh.Parts = topology.Plain, scenario.Parts{}
	for _, only := range profile.Each() {
		o.Variants = append(o.Variants, Variant{only.String(), func(s *run.Spec) { s.Mesh.Parts = only }})
	}
	if len(o.Variants) == 0 {
		return o, scenario.Refuse("knobSweep", nil, "parts of the mesh, by mesh.profile typical or mesh.parts")
	}
	return o, nil
}

// price says in one sentence what each part costs.
func price(r *Result, _ Options) {
	r.Sentences = []string{}
	for i := range r.Effects.Variants {
		e := &r.Effects.Variants[i]
		var differ, alike, other []string
		for k := range e.Figures {
			switch f := &e.Figures[k]; f.Verdict {
			case compare.Higher, compare.Lower:
				differ = append(differ, f.FromTo())
			case compare.CannotTell, compare.Same:
				alike = append(alike, f.Name)
			default:
				other = append(other, f.Name+" ("+string(f.Verdict)+")")
			}
		}
		var parts []string
		if len(differ) > 0 {
			parts = append(parts, list(differ))
		}
		if len(alike) > 0 {
			parts = append(parts, "no significant difference in "+list(alike))
		}
		if len(other) > 0 {
			parts = append(parts, "not tested: "+list(other))
		}
		if len(e.Runs.Unused) > 0 {
			parts = append(parts, fmt.Sprintf("%d of its runs did not complete", len(e.Runs.Unused)))
		}
		r.Sentences = append(r.Sentences, e.Name+": "+strings.Join(parts, "; ")+".")
	}
}

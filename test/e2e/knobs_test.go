//go:build e2e

package e2e

import (
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
)

// What istiod sends that is not of the mesh: three clusters and two listeners to every
// proxy; and, to those that are configured for everything, its own four ports
// (two of them HTTP) and the API server's.
const (
	ownClusters, ownListeners                    = 3, 2
	besidePorts, besideListeners, besideRoutings = 5, 5, 2
)

var _ = Describe("each knob alone", Ordered, func() {
	spec := topology.Spec{Pods: 30, Services: 10, Namespaces: 2, Shape: topology.Random, FanOut: 3, Seed: 5}
	flags := []string{"--services", "10", "--namespaces", "2", "--topology", "random", "--fanout", "3", "--seed", "5"}
	runs := map[string]record.Run{}

	BeforeAll(func() {
		knobs := map[string][]string{
			"permissive": {"--mode", "permissive"}, "mtls": {"--mtls", "strict"}, "scope": {"--scope", "declared"},
			"authz": {"--authz", "declared"}, "strict": {"--mode", "strict"},
		}
		// Two at a time: what sidecars hold is compared, and no time.
		sessions := map[string]*gexec.Session{}
		done := func(name string) {
			Expect(wait(sessions[name])).To(Equal(exitDone), name)
			runs[name] = printed(sessions[name])
		}
		names := slices.Sorted(maps.Keys(knobs))
		for i, name := range names {
			if i >= 2 {
				done(names[i-2])
			}
			sessions[name] = newPlace().rollout(spec.Pods, slices.Concat(flags, knobs[name], []string{"--settle", "1s", "--steady", "1s", "--calibrate=false"})...)
		}
		for _, name := range names[len(names)-2:] {
			done(name)
		}
	})

	It("is recorded, with a mode only where no knob was set by itself", func() {
		for name, want := range map[string]record.Knobs{
			"permissive": {MTLS: "permissive", Scope: "all", Authz: "none"},
			"mtls":       {MTLS: "strict", Scope: "all", Authz: "none"},
			"scope":      {MTLS: "permissive", Scope: "declared", Authz: "none"},
			"authz":      {MTLS: "permissive", Scope: "all", Authz: "declared"},
			"strict":     {MTLS: "strict", Scope: "declared", Authz: "declared"},
		} {
			Expect(runs[name].Environment.Knobs).To(Equal(want), name)
			mode := ""
			if name == "permissive" || name == "strict" {
				mode = name
			}
			run := runs[name]
			Expect(run.ModeName()).To(Equal(mode), name)
		}
	})

	It("makes exactly the resources that the call graph calls for", func() {
		mesh := topology.Build(spec)
		everything, declared := map[string]float64{}, map[string]float64{}
		for _, s := range mesh.Services {
			share := float64(s.Pods) / float64(spec.Pods)
			all, calls := float64(len(mesh.Services)), float64(len(s.Calls))
			everything["CDS"] += share * (ownClusters + 1 + all + besidePorts)
			everything["EDS"] += share * (all + besidePorts)
			everything["LDS"] += share * (ownListeners + 1 + besideListeners)
			everything["RDS"] += share * (1 + besideRoutings)
			routed := min(1, calls)
			declared["CDS"] += share * (ownClusters + 1 + calls)
			declared["EDS"] += share * calls
			declared["LDS"] += share * (ownListeners + routed)
			declared["RDS"] += share * routed
		}
		for name, run := range runs {
			want := everything
			if run.Environment.Knobs.Scope == "declared" {
				want = declared
			}
			got := run.XDS.ConfigurationResources
			Expect(slices.Sorted(maps.Keys(got))).To(Equal(slices.Sorted(maps.Keys(want))), name)
			for kind := range want {
				Expect(got[kind]).To(BeNumerically("~", want[kind], 1e-9), "%s %s", name, kind)
			}
		}
	})

	It("leaves no sidecar with a resource too many or too few", func() {
		for name, run := range runs {
			for _, w := range run.Warnings {
				Expect(strings.HasPrefix(w.About, "xds.configuration")).To(BeFalse(), "%s: %s: %s", name, w.About, w.Text)
			}
		}
	})

	It("changes the bytes of the types that it is about, and no others", func() {
		base := runs["permissive"].XDS.ConfigurationBytes
		for name, about := range map[string][]string{"mtls": {"LDS"}, "authz": {"LDS"}, "scope": {"CDS", "EDS", "LDS", "RDS"}} {
			with := runs[name].XDS.ConfigurationBytes
			for _, kind := range []string{"CDS", "EDS", "LDS", "RDS"} {
				changed := with.ByType[kind] - base.ByType[kind]
				// Addresses are longer in one cluster than in another, by a few letters.
				addresses := base.ByType[kind] / 200
				if kind == "CDS" {
					addresses = 0.01
				}
				if !slices.Contains(about, kind) {
					Expect(changed).To(BeNumerically("~", 0, addresses), "%s %s", name, kind)
				} else {
					Expect(changed).NotTo(BeNumerically("~", 0, addresses), "%s %s", name, kind)
				}
			}
		}
		Expect(runs["mtls"].XDS.ConfigurationBytes.ByType["LDS"]).To(BeNumerically("<", base.ByType["LDS"]), "no chains for plaintext")
		Expect(runs["authz"].XDS.ConfigurationBytes.ByType["LDS"]).To(BeNumerically(">", base.ByType["LDS"]))
	})
})

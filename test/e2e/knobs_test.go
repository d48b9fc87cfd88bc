//go:build e2e

package e2e

import (
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// What istiod sends that is not of the mesh: three clusters and two listeners to every
// proxy; and, to those that are configured for everything, its own four ports
// (two of them HTTP) and the API server's.
const (
	ownClusters, ownListeners                    = 3, 2
	besidePorts, besideListeners, besideRoutings = 5, 5, 2
)

var _ = Describe("a ladder of both modes, and each knob alone", Ordered, acceptance, func() {
	spec := topology.Spec{Pods: 30, Services: 10, Namespaces: 2, Shape: topology.Random, FanOut: 2, Seed: 7}
	flags := []string{"--services", "10", "--namespaces", "2", "--topology", "random", "--fanout", "2", "--seed", "7", "--calibrate=false"}
	runs := map[string]record.Run{}
	var (
		where              place // of the ladder
		session            *gexec.Session
		permissive, strict record.Run
	)

	BeforeAll(func() {
		where = newPlace()
		session = where.rollout(spec.Pods, slices.Concat(flags, []string{longSettle, "--mode", "both", "--burst", "10/2s", "--start-delay", "uniform:0s-500ms"})...)
		// Next to it: what sidecars hold is compared, and no time.
		for name, knob := range map[string][]string{"mtls": {"--mtls", "strict"}, "scope": {"--scope", "declared"}, "authz": {"--authz", "declared"}} {
			alone := newPlace().rollout(spec.Pods, slices.Concat(flags, knob, []string{"--settle", "1s", "--steady", "1s"})...)
			Expect(wait(alone)).To(Equal(exitDone), name)
			runs[name] = printed(alone)
		}
		Expect(wait(session)).To(Equal(exitDone))
		both := runsOf(session)
		Expect(statuses(both)).To(Equal([]string{"istiod-permissive-30 completed", "istiod-strict-30 completed"}))
		permissive, strict = both[0], both[1]
		runs["permissive"], runs["strict"] = permissive, strict
	})

	It("is one run for each, on a cluster of its own", func() {
		Expect(session.Err).To(gbytes.Say("run 1 of 2: istiod-permissive-30"))
		Expect(session.Err).To(gbytes.Say("starting etcd"))
		Expect(session.Err).To(gbytes.Say("run 2 of 2: istiod-strict-30"))
		Expect(session.Err).To(gbytes.Say("starting etcd"))
		Expect(permissive.Finished.Before(strict.Started)).To(BeTrue())
		for _, run := range []record.Run{permissive, strict} {
			Expect(known(run.Pods.Converged)).To(Equal(spec.Pods))
			Expect(known(run.XDS.Nacks)).To(BeZero())
		}
		where.expectNothingLeft()
	})

	It("records what was asked, and how pods came", func() {
		for _, run := range []record.Run{permissive, strict} {
			Expect(run.Scenario.Mesh).To(And(
				HaveField("Topology", "random"), HaveField("FanOut", 2), HaveField("Seed", BeEquivalentTo(7)),
				HaveField("Services", 10), HaveField("Namespaces", 2), HaveField("Sidecars.StartDelay", HaveValue(Equal(scenario.Delay{Max: 500 * time.Millisecond}))),
			))
			Expect(run.Scenario.Load.Arrival).To(Equal(scenario.Arrival{Size: 10, Interval: 2 * time.Second}))
			Expect(known(known(run.Arrival).OfferedPerSecond)).To(Equal(5.0))
			seen := where.arrivals(run.Name)
			Expect(seen).To(HaveLen(spec.Pods))
			// A burst is not created before it is due, and every pod comes after what creates it.
			for i, at := range seen {
				Expect(at.Sub(known(run.Phase(record.PhaseRollout)).Start)).To(BeNumerically(">=", time.Duration(i/10)*2*time.Second), "pod %d", i)
			}
			Expect(known(known(run.Arrival).AchievedPerSecond)).To(BeNumerically("~", float64(spec.Pods-10)/seen[spec.Pods-1].Sub(seen[9]).Seconds(), 0.01))
			Expect(known(known(run.Arrival).Steps)).To(Equal(3))
			Expect(known(known(run.Latencies.PodReady).Mean)).To(BeNumerically(">", 0.2), "the delay is part of it")
		}
	})

	It("has sidecars of strict mode hold less", func() {
		Expect(known(known(strict.XDS.ConfigurationBytes).Mean)).To(BeNumerically("<", known(known(permissive.XDS.ConfigurationBytes).Mean)))
	})

	It("is not run again into the same folder", func() {
		again := where.rollout(spec.Pods)
		Expect(wait(again)).To(Equal(exitFailed))
		Expect(again.Err).To(gbytes.Say("the folder has a run of this name"))
	})

	It("is recorded, with a mode only where no knob was set by itself", func() {
		for name, want := range map[string]scenario.Settings{
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
		base := known(runs["permissive"].XDS.ConfigurationBytes)
		for name, about := range map[string][]string{"mtls": {"LDS"}, "authz": {"LDS"}, "scope": {"CDS", "EDS", "LDS", "RDS"}} {
			with := known(runs[name].XDS.ConfigurationBytes)
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
		Expect(known(runs["mtls"].XDS.ConfigurationBytes).ByType["LDS"]).To(BeNumerically("<", base.ByType["LDS"]), "no chains for plaintext")
		Expect(known(runs["authz"].XDS.ConfigurationBytes).ByType["LDS"]).To(BeNumerically(">", base.ByType["LDS"]))
	})
})

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

// Serial: its figures are held against a second source.
var _ = Describe("a rollout of 50 pods", Ordered, Serial, func() {
	const pods = 50
	var (
		where place
		run   record.Run
	)
	BeforeAll(func() {
		where = newPlace()
		session := where.rollout(pods, longSettle, longSteady, "--baseline", "3s") // in which every program is scraped, and so uses a processor
		Expect(wait(session)).To(Equal(exitDone))
		run = printed(session)
		Expect(string(session.Err.Contents())).To(ContainSubstring("record: " + filepath.Join(where.out, run.Name)))
	})

	It("converges, and loses nothing", func() {
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(run.Reason).To(BeEmpty())
		Expect(known(run.Pods)).To(Equal(record.Pods{
			Requested: pods, Created: new(pods), Ready: new(pods), Connected: new(pods), Complete: new(pods), Converged: new(pods),
		}))
		for name, l := range map[string]*record.Latency{
			"podAdmission": run.Latencies.PodAdmission, "podReady": run.Latencies.PodReady, "podReadyWithoutKwok": run.Latencies.PodReadyWithoutKwok,
			"certificate": run.Latencies.Certificate, "token": run.Latencies.Token, "connectTotal": run.Latencies.ConnectTotal,
			"firstConfiguration": run.Latencies.FirstConfiguration, "completeConfiguration": run.Latencies.CompleteConfiguration,
		} {
			Expect(known(l).Count).To(BeEquivalentTo(pods), name)
			Expect(known(l).Lost).To(BeZero(), name)
		}
		Expect(known(run.Certificates.Issued)).To(BeEquivalentTo(pods))
		Expect(known(run.Certificates.Failed)).To(BeZero())
		Expect(known(run.XDS.Nacks)).To(BeZero())
		Expect(endings(run)).To(Equal("baseline duration, rollout converged, settle duration, steady duration"))
	})

	It("agrees with the control plane's own counts", func() {
		for _, w := range run.Warnings {
			Expect(w.Reason).NotTo(Equal(record.ReasonCountsDiffer), "%s: %s", w.About, w.Text)
		}
		own := known(run.Own).Steady
		Expect(own).To(HaveKeyWithValue("connected", float64(pods)))
		Expect(own).To(HaveKeyWithValue("totalCertificates", float64(pods)))
		for _, kind := range []string{"CDS", "EDS", "LDS", "RDS"} {
			Expect(own).To(HaveKeyWithValue("totalResponses"+kind, float64(run.XDS.Responses[kind])))
		}
		// As of the last scrape before the phase's end, which may be a second old.
		for _, name := range []string{"certificates", "injections"} {
			Expect(known(run.Own).Rollout[name]).To(And(BeNumerically(">", 0), BeNumerically("<=", pods)), name)
		}
	})

	It("has every figure", func() {
		data, err := json.Marshal(run)
		Expect(err).NotTo(HaveOccurred())
		var document map[string]any
		Expect(json.Unmarshal(data, &document)).To(Succeed())
		for _, path := range figures() {
			Expect(at(document, path)).NotTo(BeNil(), path)
		}
		for _, path := range positive() {
			Expect(at(document, path)).To(BeNumerically(">", 0), path)
		}
		// By samples in the rollout or, of a short one, in all of the run: how long it takes depends on the machine.
		speed, ok := run.Environment.Processor.Speed()
		Expect(ok).To(BeTrue())
		Expect(speed.Speed).To(BeNumerically(">", 0))
	})

	It("has a record that holds what was printed, and all that belongs to it", func() {
		recorded := where.recorded()
		Expect(recorded.Dir).To(Equal(filepath.Join(where.out, "istiod-permissive-50")))
		Expect(json.Marshal(recorded)).To(MatchJSON(must(json.Marshal(run))))

		for _, name := range []string{"certificate", "completeConfiguration", "podReady", "lag"} {
			Expect(recorded.HistogramPath(name)).To(BeARegularFile())
		}
		logs, err := filepath.Glob(filepath.Join(recorded.Dir, "logs", "*.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(logs).To(HaveLen(7))
		events, err := os.ReadFile(filepath.Join(recorded.Dir, "events.jsonl"))
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(string(events), `"kind":"podReady"`)).To(Equal(pods))
		Expect(recorded.Startups()).To(HaveLen(pods))
		moments, err := recorded.Timeline()
		Expect(err).NotTo(HaveOccurred())
		last := moments[len(moments)-1]
		Expect(last.Time).To(BeTemporally(">", known(recorded.Phase(record.PhaseSteady)).Start))
		Expect(last.Programs).To(HaveLen(7))
		Expect([]int{last.Created, last.Ready, last.Connected, last.Complete, last.Converged}).To(HaveEach(pods))
	})

	It("can be reported on", func() {
		for format, want := range map[string]string{
			"table": "Rolling out 50 pods", "wide": "istiod-permissive-50: completed", "markdown": "istiod-permissive-50", "yaml": "kind: RunList", "json": `"kind": "RunList"`,
			"html": "<!DOCTYPE html>",
		} {
			session := where.start("report", where.out, "-o", format)
			Expect(wait(session)).To(Equal(exitDone))
			Expect(string(session.Out.Contents())).To(ContainSubstring(want))
		}
	})

	It("has time series from which its figures can be computed again", func(ctx SpecContext) {
		expectRecomputed(ctx, where.recorded())
	})

	It("leaves nothing but its record", func() {
		where.expectNothingLeft()
		Expect(os.ReadDir(where.out)).To(HaveLen(1))
	})
})

var _ = Describe("a rollout over state-of-the-world xDS", func() {
	It("converges, and records the processors, memory and environment that its control plane was given", func() {
		const pods = 20
		where := newPlace()
		session := where.rollout(pods, longSettle, "--xds", "sotw", "--control-plane-memory", "1Gi", "--control-plane-cpus", "1", "--control-plane-env", "PILOT_DEBOUNCE_AFTER=50ms")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(run.Scenario.Mesh.Sidecars.XDS).To(Equal("sotw"))
		Expect(known(run.Pods.Converged)).To(Equal(pods))
		Expect(known(run.Certificates.Issued)).To(BeEquivalentTo(pods))
		Expect(known(run.XDS.Nacks)).To(BeZero())
		for _, w := range run.Warnings {
			Expect(w.Reason).NotTo(Equal(record.ReasonCountsDiffer), "%s: %s", w.About, w.Text)
		}
		about := run.Environment.ControlPlane
		Expect(about.GOMAXPROCS).To(Equal(1))
		Expect(about.MemoryLimitBytes).To(BeEquivalentTo(1 << 30))
		Expect(about.MemoryLimitEnforced).To(Equal(process.CanLimitMemory() == nil))
		Expect(about.Settings).To(And(HaveKeyWithValue("GOMEMLIMIT", "966367641"), HaveKeyWithValue("PILOT_DEBOUNCE_AFTER", "50ms")))
		where.expectNothingLeft()
	})
})

// endings returns a run's phases, each with what ended it.
func endings(run record.Run) string {
	var all []string
	for _, p := range run.Phases {
		all = append(all, string(p.Name)+" "+string(p.EndedBy))
	}
	return strings.Join(all, ", ")
}

func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}

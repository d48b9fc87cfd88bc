//go:build e2e

package testmesh

import (
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// machine are the reasons of warnings that a busy machine causes. Any other points to
// something that the driver or the run does not fit.
var machine = []record.Reason{
	record.ReasonSaturated, record.ReasonAtLimit, record.ReasonLateInstrument, record.ReasonLateReceipt, record.ReasonWaitedInstrument,
	record.ReasonPaused, record.ReasonLateBurst, record.ReasonScrapeGap, record.ReasonNotQuiet, record.ReasonNotQuietBetween, record.ReasonWatchesClosed,
}

const (
	pods   = 20
	probes = 2
)

// A mesh of another kind needs its own package alone: a real rollout, on the real
// cluster, against a driver that scaler does not know.
var _ = It("converges in a rollout in each of its modes, and the record is complete", Label("e2e"), Serial, func(ctx SpecContext) {
	driver := Driver("")
	spec := run.DefaultSpec()
	spec.Drivers = []controlplane.Driver{driver}
	spec.ControlPlane, spec.XDS = driver.Name, driver.Proxy.Variants()[0]
	spec.Topology.Services, spec.Topology.Namespaces = 4, 2
	spec.Baseline, spec.Settle, spec.Steady, spec.Probes = time.Second, 2*time.Second, 3*time.Second, probes
	spec.NoCalibrate = true
	spec.Out, spec.State = GinkgoT().TempDir(), GinkgoT().TempDir()
	spec.Programs = component.Options{
		BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR"), Progress: func(msg string) { GinkgoWriter.Println(msg) },
	}
	ladder := run.Ladder{Spec: spec, Pods: []int{pods}, Modes: driver.ModeNames()}
	runs, err := ladder.Run(ctx, run.Progress{Say: func(msg string) { GinkgoWriter.Println(msg) }})
	Expect(err).NotTo(HaveOccurred())
	Expect(runs).To(HaveLen(len(driver.Modes)))
	for i := range runs {
		By("reading the record of " + runs[i].Name)
		spec.Topology.Pods = pods
		expectRecord(&runs[i], driver.Modes[i], topology.Build(spec.Topology))
	}
}, SpecTimeout(10*time.Minute))

func expectRecord(run *record.Run, mode controlplane.Mode, mesh topology.Mesh) {
	GinkgoHelper()
	for _, w := range run.Warnings {
		GinkgoWriter.Printf("warning: %s %s: %s\n", w.About, w.Reason, w.Text)
	}
	GinkgoWriter.Printf("certificates: p50 %.4f s, max %.4f s; responses %v\n", *run.Latencies.Certificate.P50, *run.Latencies.Certificate.Max, run.XDS.Responses)
	By("how it was set")
	Expect(run.Status).To(Equal(record.StatusCompleted))
	Expect(run.Name).To(Equal(Name + "-" + mode.Name + "-20"))
	Expect(run.Spec.Mode).To(Equal(mode.Name))
	Expect(run.Environment.Knobs).To(Equal(record.Knobs(mode.Knobs)))
	Expect(run.Spec.XDS).To(Equal(string(xdsprobe.SotW)))
	Expect(run.Environment.ControlPlane.Name).To(Equal(Name))

	By("what became of the pods")
	for _, n := range []*int{run.Pods.Created, run.Pods.Ready, run.Pods.Connected, run.Pods.Complete, run.Pods.Converged} {
		Expect(n).To(HaveValue(Equal(pods)))
	}

	By("certificates, which come over SDS")
	Expect(run.Certificates.Issued).To(HaveValue(BeEquivalentTo(pods + probes))) // each probe adds a pod
	Expect(run.Certificates.Attempts).To(HaveValue(BeEquivalentTo(pods + probes)))
	Expect(run.Certificates.Failed).To(HaveValue(BeZero()))
	certificate := run.Latencies.Certificate
	Expect(certificate.Count).To(BeEquivalentTo(pods))
	Expect(certificate.Lost).To(BeZero())
	Expect(*certificate.Min).To(BeNumerically(">", 0))
	Expect(*certificate.Max).To(BeNumerically(">=", *certificate.Min))
	Expect(run.Latencies.Token).To(BeNil(), "there are no tokens")
	Expect(run.Latencies.Key).To(BeNil(), "keys come with the certificates")

	By("the exchange, by type")
	Expect(run.XDS.Nacks).To(HaveValue(BeZero()))
	Expect(run.XDS.Refusals).To(HaveValue(BeZero()))
	for _, kind := range []convergence.Type{convergence.CDS, convergence.EDS, convergence.LDS, convergence.RDS, convergence.SDS} {
		Expect(run.XDS.Responses[kind.String()]).To(BeNumerically(">=", pods), kind)
		Expect(run.XDS.Bytes[kind.String()]).To(BeNumerically(">", 0), kind)
		Expect(run.Own.Probe).To(HaveKeyWithValue("totalResponses"+kind.String(), float64(run.XDS.Responses[kind.String()])))
	}
	Expect(run.Own.Probe).To(HaveKeyWithValue("connected", float64(pods)))
	Expect(run.Own.Probe).To(HaveKeyWithValue("totalCertificates", float64(*run.Certificates.Issued)))
	secrets := 0.0 // of a sidecar, in the mean
	for i, s := range mesh.Services {
		secrets += float64(s.Pods*(2+len(inScope(mesh, mode.Knobs, i)))) / pods
	}
	Expect(run.XDS.ConfigurationResources[convergence.SDS.String()]).To(BeNumerically("~", secrets, 1e-9))

	By("what it cost, and the pushes")
	for _, phase := range []*record.Usage{run.ControlPlane.Baseline, run.ControlPlane.Rollout, run.ControlPlane.Steady, run.ControlPlane.Probe} {
		Expect(phase).NotTo(BeNil())
	}
	for _, kind := range []record.ChangeKind{record.EndpointAdd, record.EndpointRemove, record.EndpointHealth, record.RouteChange, record.PolicyChange} {
		Expect(run.Latencies.Push).To(HaveKey(kind))
		Expect(run.Latencies.Push[kind].Count).NotTo(BeZero(), kind)
		Expect(run.Latencies.Push[kind].Lost).To(BeZero(), kind)
	}
	for _, w := range run.Warnings {
		Expect(slices.Contains(machine, w.Reason)).To(BeTrue(), "%s %s: %s", w.About, w.Reason, w.Text)
	}
}

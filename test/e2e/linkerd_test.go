//go:build e2e

package e2e

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("Linkerd", func() {
	It("is measured while its programs end, and changes are followed", func(ctx SpecContext) {
		const pods = 30
		where := newPlace()
		session := where.rollout(pods, longSettle, longSteady, "--control-plane", "linkerd", "--services", "5", "--probes", "2",
			"--fault", "kill-control-plane@probe", "--fault", "restart-control-plane:linkerd-identity@steady",
			"--fault", "restart-control-plane:linkerd-proxy-injector@steady", "--calibrate=false")
		Expect(wait(session)).To(Equal(exitDone))

		run := printed(session)
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(run.Pods.Converged).To(HaveValue(Equal(pods)))
		Expect(run.Certificates.Failed).To(HaveValue(BeZero()))
		Expect(known(run.Latencies.Certificate).Count).To(BeEquivalentTo(pods))
		Expect(run.Scenario.Mesh.Sidecars.XDS).To(BeEmpty())
		Expect(run.XDS.Acks).To(BeNil())
		Expect(run.XDS.Responses).To(And(HaveKey("Profile"), HaveKey("Addresses")))
		Expect(run.Warnings).To(ContainElement(And(HaveField("About", "scenario.mesh.sidecars.xds"), HaveField("Reason", record.ReasonNotSupported))))

		By("the injector")
		// As of the last scrape before the phase's end, which may be a second old.
		Expect(known(run.Own).Rollout["injectedPods"]).To(And(BeNumerically(">", 0), BeNumerically("<=", pods)))
		recorded := where.recorded()
		prom := open(ctx, filepath.Join(recorded.Dir, "prometheus"))
		Expect(prom.value(ctx, `sum(proxy_inject_admission_responses_total{skip="false"})`, known(known(recorded.Phase(record.PhaseSteady)).End))).To(BeEquivalentTo(pods))
		Expect(known(known(run.Cluster["linkerd-proxy-injector"].Rollout).Cores).Mean).To(HaveValue(BeNumerically(">", 0)))

		By("the faults")
		Expect(known(run.ControlPlane.Probe).Restarts).To(HaveValue(Equal(1)))
		Expect(run.Faults).To(HaveLen(3))
		Expect(run.Faults[0]).To(And(HaveField("Name", "kill-control-plane"), HaveField("Reconnected", HaveValue(Equal(pods)))))

		By("the changes")
		expectFollowed(run, record.EndpointAdd, record.EndpointRemove, record.RouteChange)
		By("the record, which has no keys")
		Expect(filepath.Glob(filepath.Join(where.out, "*", "logs", "*", "*"))).To(BeEmpty())
		where.expectNothingLeft()
	})
})

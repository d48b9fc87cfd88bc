//go:build e2e

package e2e

import (
	"strconv"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

var _ = Describe("Open Service Mesh", func() {
	It("is measured while its programs end, and changes are followed", func(ctx SpecContext) {
		const pods, real = 30, 1
		where := newPlace()
		session := where.rollout(pods, longSettle, longSteady, "--control-plane", "osm", "--mode", "strict", "--burst", "10/3s", "--probes", "2",
			"--real-sidecars", strconv.Itoa(real), "--envoy", envoy(ctx),
			"--fault", "kill-control-plane@probe", "--fault", "restart-control-plane:osm-injector@steady", "--calibrate=false")
		where.reach(session, record.PhaseRollout)
		Expect(syscall.Kill(where.child("osm-injector"), syscall.SIGKILL)).To(Succeed())
		Expect(wait(session)).To(Equal(exitDone))

		run := printed(session)
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(run.Pods.Converged).To(HaveValue(Equal(pods)))
		Expect(run.Certificates.Failed).To(HaveValue(BeZero()))
		Expect(known(run.Latencies.Certificate).Count).To(BeEquivalentTo(pods - real))
		Expect(run.Certificates.Note).To(ContainSubstring("from the first request for the secret"))
		Expect(known(run.Latencies.Certificate).Lost).To(BeZero())

		By("what differs from Istio: the state of the world, secrets over it, no tokens, knobs of its own")
		Expect(run.Name).To(Equal("osm-strict-30"))
		Expect(run.Scenario.Mesh.Sidecars.XDS).To(Equal("sotw"))
		Expect(run.Environment.Knobs).To(Equal(scenario.Settings{MTLS: "strict", Scope: scenario.ScopeDeclared, Authz: "declared"}))
		Expect(run.XDS.Responses["SDS"]).To(BeNumerically(">=", pods-real))
		Expect(run.XDS.Bytes["SDS"]).To(BeNumerically(">", 0))
		Expect(run.Latencies.Token).To(BeNil(), "there are no tokens")
		Expect(run.Latencies.Key).To(BeNil(), "keys come with the certificates")

		By("the real sidecar")
		Expect(known(known(run.Sidecars).Real).Each).To(HaveLen(real))
		Expect(known(known(run.Sidecars).Real).Each[0].Crashes).To(BeZero())
		Expect(known(known(known(known(run.Sidecars).Real).Steady).MemoryBytes).Mean).To(HaveValue(BeNumerically(">", 20e6)))
		Expect(known(known(known(known(run.Sidecars).Real).Starts).Certificate).Count).To(BeEquivalentTo(real))
		Expect(known(known(known(known(run.Sidecars).Real).Starts).CompleteConfiguration).Count).To(BeEquivalentTo(real))

		By("the program that ended by itself")
		Expect(run.Warnings).To(ContainElement(And(
			HaveField("About", "cluster.osm-injector.rollout"), HaveField("Reason", record.ReasonCrashed), HaveField("Component", "osm-injector"),
		)))
		Expect(known(run.Cluster["osm-injector"].Rollout).Restarts).To(HaveValue(Equal(1)))
		Expect(known(run.ControlPlane.Rollout).Restarts).To(HaveValue(BeZero()))

		By("the faults")
		Expect(known(run.ControlPlane.Probe).Restarts).To(HaveValue(Equal(1)))
		Expect(run.Faults).To(HaveLen(2))
		Expect(run.Faults[0]).To(And(HaveField("Name", "kill-control-plane"), HaveField("Reconnected", HaveValue(Equal(pods-real)))))
		Expect(run.Faults[1]).To(And(
			HaveField("Name", "restart-control-plane:osm-injector"), HaveField("Seconds", Not(BeNil())), HaveField("Reconnected", HaveValue(BeZero())),
		))

		By("the changes")
		expectFollowed(run, record.EndpointAdd, record.EndpointRemove, record.PolicyChange)
		where.expectNothingLeft()
	}, SpecTimeout(5*time.Minute))
})

//go:build e2e

package e2e

import (
	"encoding/json"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

var _ = Describe("a plan that is carried out", Ordered, func() {
	var where place

	BeforeAll(func() {
		where = newPlace()
		measured := where.rollout(0, "--pods", "10,20", "--control-plane", "reference", "--burst", "10/2s", "--topology", "star", "--settle", "1s", "--steady", "2s", "--probes", "0")
		Expect(wait(measured)).To(Equal(exitDone))
	})

	carryOut := func(pods int, out string) *gexec.Session {
		GinkgoHelper()
		return where.start("plan", where.out, "--pods", strconv.Itoa(pods), "--force",
			"--control-plane-cpus", "2", "--control-plane-memory", "1Gi", "--verify", "--out", out, "-o", "json")
	}

	It("has what it asks for", func() {
		out := GinkgoT().TempDir()
		verified := carryOut(30, out)
		code := wait(verified)
		Expect(code).To(BeElementOf(exitDone, exitMissed))
		var plan capacity.Plan
		Expect(json.Unmarshal(verified.Out.Contents(), &plan)).To(Succeed())
		Expect(plan.Verification).NotTo(BeNil())
		Expect(plan.Verification.MemoryBytes).To(BeEquivalentTo(1 << 30))
		Expect(plan.Verification.Passed).To(Equal(code == exitDone))
		verdicts := map[string]capacity.Verdict{}
		for _, c := range plan.Verification.Checks {
			verdicts[c.Name] = c.Verdict
		}
		for _, name := range []string{"not killed for its memory", "converged", "converged again after a kill", "a change reached every sidecar"} {
			Expect(verdicts).To(HaveKeyWithValue(name, capacity.Passed))
		}
		// Whether two runs determine an interval, and whether it holds a third one, is chance.
		Expect(verdicts).To(HaveKey("controlPlane.rollout.cpuSeconds"))
		runs, err := record.Read(out)
		Expect(err).NotTo(HaveOccurred())
		Expect(runs).To(HaveLen(1))
		Expect(runs[0].Scenario).To(And(
			HaveField("Mesh.Pods", ConsistOf(30)), HaveField("Load.Arrival", scenario.Arrival{Size: 10, Interval: 2 * time.Second}), HaveField("Mesh.Topology", "star"),
			HaveField("Load.Faults", ConsistOf(scenario.Fault{Kind: scenario.KillControlPlane, Phase: scenario.PhaseSteady})),
		))
		where.expectNothingLeft()
	})

	It("leaves nothing when it is interrupted", func() {
		out := GinkgoT().TempDir()
		session := carryOut(100, out) // they arrive 10 every 2 s
		place{state: where.state, out: out}.reach(session, record.PhaseRollout)
		sockets := where.sockets(session)
		interrupt(session)
		Expect(wait(session)).To(Equal(exitInterrupted))
		where.expectNothingLeft(sockets...)
	})
})

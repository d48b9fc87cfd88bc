//go:build e2e

package e2e

import (
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/pkg/record"
)

// upgrade starts `scaler upgrade` of so many pods with short phases, from the default version
// to itself with another setting: no other version is built for it.
func (p place) upgrade(pods int, args ...string) *gexec.Session {
	GinkgoHelper()
	return p.start(append([]string{
		"upgrade", "--dilate", "1", "--from", "1.31.0", "--to", "1.31.0", "--to-env", "PILOT_PUSH_THROTTLE=10",
		"--pods", strconv.Itoa(pods), "--canary", "50%,100%", "--pause", "3s", "--out", p.out, "-o", "json",
		"--baseline", "1s", "--settle", "3s", "--steady", "4s", "--converge-timeout", "90s", "--calibrate=false",
	}, args...)...)
}

var _ = Describe("an upgrade in two waves", func() {
	It("moves every sidecar to the new revision, and removes the old one", acceptance, func() {
		const pods = 20
		where := newPlace()
		Expect(wait(where.upgrade(pods))).To(Equal(exitDone))
		where.expectNothingLeft()

		recorded := where.recorded()
		Expect(recorded.Status).To(Equal(record.StatusCompleted))
		Expect(recorded.UpgradeStages()).To(Equal([]string{"start", "wave-1", "wave-2", "remove", "after"}))
		upgrade := known(recorded.Upgrade)
		Expect(upgrade.From.Revision).To(Equal("1-31-0"))
		Expect(upgrade.To.Revision).To(Equal("1-31-0-next"))
		programs := recorded.Environment.Programs
		Expect(programs).To(HaveKeyWithValue("istiod-1-31-0-next", programs["istiod"]), "the same version, so the same program")
		for _, wave := range []string{"wave-1", "wave-2"} {
			stage := known(upgrade.Stages[wave])
			Expect(known(stage.Pods)).To(Equal(pods/2), wave)
			Expect(known(stage.Replaced)).To(BeNumerically(">=", pods/2), wave)
			Expect(known(stage.PeakPods)).To(BeNumerically(">=", pods), wave)
			Expect(known(stage.Latencies.Certificate).Lost).To(BeZero(), wave)
			Expect(known(stage.Latencies.CompleteConfiguration).Count).To(BeNumerically(">=", pods/2), wave)
			Expect(known(known(stage.To).Responses)).To(BeNumerically(">", 0), wave)
			Expect(known(known(known(stage.To).ControlPlane).CPUSeconds)).To(BeNumerically(">", 0), wave)
			Expect(known(stage.PeakMemoryBytes)).To(BeNumerically(">", known(known(known(known(stage.From).ControlPlane).MemoryBytes).End)), wave)
		}
		Expect(known(known(known(upgrade.Stages["wave-1"]).From).Push[record.EndpointRemove]).Count).To(BeNumerically(">", 0), "sidecars of the old revision lost endpoints of moved pods")
		Expect(known(upgrade.Stages["after"]).From).To(BeNil(), "the old control plane is gone")
		Expect(known(known(upgrade.Room).MemoryBytes)).To(BeNumerically(">", 0))

		report := where.start("report", where.out)
		Expect(wait(report)).To(Equal(exitDone))
		Expect(report.Out).To(gbytes.Say("During the upgrade from 1.31.0 to 1.31.0 the cluster needs"))
	})
})

var _ = Describe("an upgrade in ambient mode that is rolled back", func() {
	It("moves the ztunnels, the waypoint, and then both back", acceptance, func() {
		where := newPlace()
		Expect(wait(where.upgrade(6, "--dataplane", "ambient", "--waypoints", "namespace", "--pods-per-node", "3", "--rollback-at", "2", "--canary", "10%,50%,100%"))).To(Equal(exitDone))
		where.expectNothingLeft()
		recorded := where.recorded()
		Expect(recorded.UpgradeStages()).To(Equal([]string{"start", "wave-1", "wave-2", "rollback", "remove", "after"}))
		ztunnels, waypoints := record.UpgradeUnit{Kind: record.UpgradeNodes, Name: "ztunnel", Pods: 2}, record.UpgradeUnit{Kind: record.UpgradeWaypoints, Name: "waypoint", Pods: 1}
		for stage, moved := range map[string][]record.UpgradeUnit{"wave-1": {ztunnels}, "wave-2": {waypoints}, "rollback": {ztunnels, waypoints}} {
			of := known(recorded.Upgrade.Stages[stage])
			Expect(of.Moved).To(Equal(moved), stage)
			Expect(known(of.Replaced)).To(Equal(known(of.Pods)), stage)
			Expect(recorded.Phase(record.UpgradePhase(stage)).EndedBy).To(Equal(record.EndedByConverged), stage)
		}
		Expect(known(known(recorded.Upgrade.Stages["wave-1"]).Latencies.Certificate)).To(And(HaveField("Count", BeNumerically(">=", 2)), HaveField("Lost", BeZero())), "each new ztunnel has one for each identity on its node")
		Expect(known(recorded.Upgrade.Stages["after"]).To).To(BeNil(), "the new control plane is gone")
	})
})

//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

// faultsOf returns a run's faults by name.
func faultsOf(run record.Run) map[string]record.Fault {
	faults := map[string]record.Fault{}
	for _, fault := range run.Faults {
		faults[fault.Name] = fault
	}
	return faults
}

// event returns the line of the first event of a kind in the run that is recorded in
// this place.
func (p place) event(kind string) []byte {
	GinkgoHelper()
	events, err := os.ReadFile(filepath.Join(p.recorded().Dir, "events.jsonl"))
	Expect(err).NotTo(HaveOccurred())
	for line := range bytes.Lines(events) {
		if bytes.Contains(line, []byte(`"kind":"`+kind+`"`)) {
			return line
		}
	}
	Fail("there is no event " + kind)
	return nil
}

// Serial: what is disturbed is measured.
var _ = Describe("faults and churn in steady state", Ordered, Serial, func() {
	const pods = 20
	var (
		where  place
		run    record.Run
		faults map[string]record.Fault
	)
	BeforeAll(func() {
		where = newPlace()
		session := where.rollout(pods, longSettle, longSteady, "--cycle", "10s", "--churn", "2/s",
			"--fault", "kill-control-plane@steady", "--fault", "restart-control-plane@steady",
			"--fault", "reset-streams:20%@steady", "--fault", "pause-scaler:5s@steady", "--fault", "rolling-restart@steady")
		Expect(wait(session)).To(Equal(exitDone))
		run = printed(session)
		faults = faultsOf(run)
		where.expectNothingLeft()
	})

	It("comes back from every one", func() {
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(faults).To(HaveLen(5))
		for name, fault := range faults {
			Expect(fault.Phase).To(Equal(record.PhaseSteady), name)
			Expect(known(fault.Seconds)).To(BeNumerically(">=", known(fault.LastedSeconds)), name)
			Expect(known(fault.ControlPlane.CPUSeconds)).To(BeNumerically(">=", 0), name)
			Expect(fault.Latencies.Reconnect == nil || known(fault.Latencies.Reconnect).Lost == 0).To(BeTrue(), name)
		}
		Expect(known(run.Certificates.Failed)).To(BeZero())
		Expect(known(run.XDS.Nacks)).To(BeZero())
	})

	It("has every sidecar reconnect when the control plane goes", func() {
		for _, name := range []string{"kill-control-plane", "restart-control-plane"} {
			fault := faults[name]
			Expect(known(fault.Reconnected)).To(Equal(pods), name)
			Expect(known(fault.Latencies.Reconnect).Count).To(BeEquivalentTo(pods), name)
			Expect(known(fault.Attempts)).To(BeNumerically(">=", pods), name)
			Expect(known(fault.ControlPlane.Restarts)).To(Equal(1), name)
			Expect(known(fault.ControlPlane.CPUSeconds)).To(BeNumerically(">", 0.1), name)
		}
	})

	It("disturbs what each fault is documented to, and no more", func() {
		Expect(known(faults["reset-streams:20%"].Reconnected)).To(Equal(pods / 5))
		Expect(known(faults["rolling-restart"].Replaced)).To(Equal(pods))
		Expect(known(faults["rolling-restart"].Latencies.CompleteConfiguration).Count).To(BeEquivalentTo(pods))
		Expect(known(faults["pause-scaler:5s"].LastedSeconds)).To(BeNumerically(">", 5))
	})

	It("replaces pods at the rate asked for", func() {
		Expect(known(known(run.Churn).OfferedPerSecond)).To(Equal(2.0))
		Expect(known(known(run.Churn).Replaced)).To(Equal(8))
		// None is replaced before it is due, and all are in the phase, which a busy machine ends late.
		length := known(known(run.Phase(record.PhaseChurn)).Seconds)
		Expect(known(known(run.Churn).AchievedPerSecond)).To(And(BeNumerically(">=", 8/length), BeNumerically("<=", 2)))
		Expect(known(known(run.Churn).Latencies.CompleteConfiguration).Count).To(BeEquivalentTo(8))
		Expect(known(known(run.Churn).Latencies.CompleteConfiguration).Lost).To(BeZero())
		Expect(run.ControlPlane.Churn).NotTo(BeNil())
		Expect(known(run.Churn).Seconds).NotTo(BeNil())
	})

	It("has every sidecar reconnect once in a cycle, and states the cores that this takes", func() {
		c := known(run.Cycle)
		Expect(c.Sidecars).To(Equal(pods))
		Expect(known(c.Returned)).To(Equal(pods))
		Expect(known(c.Reconnect).Count).To(BeEquivalentTo(pods))
		Expect(known(c.Reconnect).Lost).To(BeZero())
		Expect([]any{c.AgeSeconds, c.RenewalSeconds, c.Renewals}).To(HaveExactElements(30*60.0, 12*3600.0, 1)) // 20 x 30 min / 12 h
		Expect(known(c.CPUSeconds)).To(BeNumerically(">", 0))
		steady := known(known(known(run.ControlPlane.Steady).Cores).Mean)
		Expect(known(c.Cores)).To(And(BeNumerically(">", steady), BeNumerically("<", known(known(known(run.ControlPlane.Cycle).Cores).Mean))))
	})

	It("leaves the run's own figures alone", func() {
		Expect(endings(run)).To(HavePrefix("baseline duration, rollout converged, settle duration, steady duration, cycle converged, churn duration, fault converged, fault"))
		Expect(known(known(run.ControlPlane.Steady).Restarts)).To(BeZero())
		Expect(known(run.Latencies.CompleteConfiguration).Count).To(BeEquivalentTo(pods))
		Expect(known(run.Latencies.Connect).Count).To(BeEquivalentTo(pods))
		Expect(known(run.Latencies.Certificate).Count).To(BeEquivalentTo(pods))
		Expect(run.Latencies.Reconnect).To(BeNil())
		Expect(known(known(run.Instrument.Lag).Max)).To(BeNumerically("<", 4.9), "the pause is the fault's")
		Expect(filepath.Join(where.out, run.Name, "latencies", "faults.0.reconnect.hgrm")).To(BeAnExistingFile())
		Expect(filepath.Join(where.out, run.Name, "latencies", "churn.completeConfiguration.hgrm")).To(BeAnExistingFile())
	})
})

var _ = Describe("an API server that is gone", func() {
	It("disturbs no sidecar, and nothing comes next before all its clients watch again", func() {
		const pods = 20
		where := newPlace()
		session := where.rollout(pods, longSettle, longSteady, "--fault", "api-server-gone:3s@steady", "--fault", "rolling-restart@steady")
		Eventually(session).WithTimeout(6 * time.Minute).Should(gexec.Exit(exitDone)) // more than scaler waits for the clients
		run := printed(session)
		faults := faultsOf(run)
		gone := faults["api-server-gone:3s"]
		Expect(known(gone.LastedSeconds)).To(BeNumerically(">", 3))
		Expect(known(gone.Reconnected)).To(BeZero(), "the control plane serves on")
		Expect(known(faults["rolling-restart"].Replaced)).To(Equal(pods))

		var back struct {
			Time   time.Time
			Fields struct {
				MissingFirst, Missing int
				Seconds               float64
			}
		}
		Expect(json.Unmarshal(where.event("watchesBack"), &back)).To(Succeed())
		// client-go waits before it tries again: only a first look that comes late finds all of them back.
		looked := back.Time.Sub(gone.At).Seconds() - known(gone.LastedSeconds)
		Expect(back.Fields.MissingFirst > 0 || looked > 4).To(BeTrue(), "%+v, %.1f s after the API server was back", back, looked)
		Expect(back.Fields.Missing).To(BeZero())
		Expect(back.Time).To(BeTemporally("<", faults["rolling-restart"].At))
	})
})

var _ = Describe("faults in rollout", func() {
	It("are part of it, and are recovered from with it", func() {
		const pods = 30
		where := newPlace()
		session := where.rollout(pods, "--burst", "10/2s", "--fault", "kill-control-plane@rollout", "--fault", "reset-streams:50%@rollout")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(endings(run)).To(Equal("baseline duration, rollout converged, settle duration, steady duration"))
		Expect(known(run.Pods.Converged)).To(Equal(pods))
		Expect(run.Faults).To(HaveLen(2))
		for _, fault := range run.Faults {
			Expect(fault.Phase).To(Equal(record.PhaseRollout))
			Expect(known(fault.Seconds)).To(BeNumerically("<", known(known(run.Phase(record.PhaseRollout)).Seconds)))
			Expect(known(fault.Reconnected)).To(BeNumerically(">", 0))
		}
		Expect(known(known(run.ControlPlane.Rollout).Restarts)).To(Equal(1))
		Expect(known(known(run.ControlPlane.Steady).Restarts)).To(BeZero())
	})
})

var _ = Describe("a control plane with too little memory", func() {
	It("ends the run with that reason, at that size", func() {
		if err := process.CanLimitMemory(); err != nil {
			Skip("memory cannot be limited here: " + err.Error())
		}
		where := newPlace()
		session := where.rollout(20, "--control-plane-memory", "80Mi", "--control-plane-env", "GOMEMLIMIT=off", "--control-plane-env", "GOGC=off")
		Expect(wait(session)).To(Equal(exitFailed))
		Expect(session.Err).To(gbytes.Say("istiod was killed by the kernel: out of memory at its limit of 80 MiB"))
		where.expectNothingLeft()

		run := where.recorded()
		Expect(run.Status).To(Equal(record.StatusFailed))
		Expect(run.Reason).To(ContainSubstring("out of memory at its limit of 80 MiB"))
		group := fmt.Sprintf("scaler-%d-*-istiod", session.Command.Process.Pid)
		Expect(filepath.Glob(filepath.Join("/sys/fs/cgroup/memory", group))).To(BeEmpty())
		Expect(filepath.Glob(filepath.Join("/sys/fs/cgroup", group))).To(BeEmpty())
	})
})

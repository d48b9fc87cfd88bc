//go:build e2e

package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// exitMissed is the exit code of what finished and did not converge.
const exitMissed = 3

// runsOf are the runs that a scaler has printed as JSON.
func runsOf(session *gexec.Session) []record.Run {
	GinkgoHelper()
	var list record.RunList
	Expect(json.Unmarshal(session.Out.Contents(), &list)).To(Succeed())
	return list.Items
}

// names and statuses of runs.
func statuses(runs []record.Run) (all []string) {
	for _, run := range runs {
		all = append(all, run.Name+" "+string(run.Status))
	}
	return all
}

// arrivals are when the pods of a run in this place were first seen, in order.
func (p place) arrivals(name string) []time.Time {
	GinkgoHelper()
	runs, err := record.Read(filepath.Join(p.out, name))
	Expect(err).NotTo(HaveOccurred())
	Expect(runs).To(HaveLen(1))
	startups, err := runs[0].Startups()
	Expect(err).NotTo(HaveOccurred())
	var seen []time.Time
	for _, s := range startups {
		seen = append(seen, s.Times.Seen)
	}
	slices.SortFunc(seen, time.Time.Compare)
	return seen
}

var _ = Describe("a ladder of both modes", Ordered, func() {
	const pods = 30
	var (
		where              place
		session            *gexec.Session
		permissive, strict record.Run
	)
	BeforeAll(func() {
		where = newPlace()
		session = where.rollout(pods, longSettle, "--mode", "both", "--burst", "10/2s", "--start-delay", "uniform:0s-500ms",
			"--topology", "star", "--fanout", "2", "--seed", "7", "--services", "6", "--namespaces", "2")
		Expect(wait(session)).To(Equal(exitDone))
		runs := runsOf(session)
		Expect(statuses(runs)).To(Equal([]string{"istiod-permissive-30 completed", "istiod-strict-30 completed"}))
		permissive, strict = runs[0], runs[1]
	})

	It("is one run for each, on a cluster of its own", func() {
		Expect(session.Err).To(gbytes.Say("run 1 of 2: istiod-permissive-30"))
		Expect(session.Err).To(gbytes.Say("starting etcd"))
		Expect(session.Err).To(gbytes.Say("run 2 of 2: istiod-strict-30"))
		Expect(session.Err).To(gbytes.Say("starting etcd"))
		Expect(permissive.Finished.Before(strict.Started)).To(BeTrue())
		for _, run := range []record.Run{permissive, strict} {
			Expect(*run.Pods.Converged).To(Equal(pods))
			Expect(*run.XDS.Nacks).To(BeZero())
		}
		where.expectNothingLeft()
	})

	It("records what was asked, and how pods came", func() {
		for _, run := range []record.Run{permissive, strict} {
			Expect(run.Scenario.Mesh).To(And(
				HaveField("Topology", "star"), HaveField("FanOut", 2), HaveField("Seed", BeEquivalentTo(7)),
				HaveField("Services", 6), HaveField("Namespaces", 2), HaveField("Sidecars.StartDelay", HaveValue(Equal(scenario.Delay{Max: 500 * time.Millisecond}))),
			))
			Expect(run.Scenario.Load.Arrival).To(Equal(scenario.Arrival{Size: 10, Interval: 2 * time.Second}))
			Expect(*run.Arrival.OfferedPerSecond).To(Equal(5.0))
			seen := where.arrivals(run.Name)
			Expect(seen).To(HaveLen(pods))
			// A burst is not created before it is due, and every pod comes after what creates it.
			for i, at := range seen {
				Expect(at.Sub(run.Phase(record.PhaseRollout).Start)).To(BeNumerically(">=", time.Duration(i/10)*2*time.Second), "pod %d", i)
			}
			Expect(*run.Arrival.AchievedPerSecond).To(BeNumerically("~", (pods-10)/seen[pods-1].Sub(seen[9]).Seconds(), 0.01))
			Expect(*run.Arrival.Steps).To(Equal(3))
			Expect(*run.Latencies.PodReady.Mean).To(BeNumerically(">", 0.2), "the delay is part of it")
		}
	})

	It("has its knobs make the difference that they should", func() {
		Expect(permissive.Environment.Knobs).To(Equal(record.Knobs{MTLS: "permissive", Scope: "all", Authz: "none"}))
		Expect(strict.Environment.Knobs).To(Equal(record.Knobs{MTLS: "strict", Scope: "declared", Authz: "declared"}))
		Expect(*strict.XDS.ConfigurationBytes.Mean).To(BeNumerically("<", *permissive.XDS.ConfigurationBytes.Mean))
	})

	It("is not run again into the same folder", func() {
		again := where.rollout(pods)
		Expect(wait(again)).To(Equal(exitFailed))
		Expect(again.Err).To(gbytes.Say("the run is there already"))
	})
})

var _ = Describe("a ladder that does not go well", func() {
	ladder := func(where place, args ...string) *gexec.Session {
		return where.rollout(0, append([]string{"--pods", "20,10", "--control-plane", "reference", "--settle", "1s", "--steady", "2s"}, args...)...)
	}

	DescribeTable("is interrupted in its second run, and leaves readable records and nothing else",
		func(phase record.PhaseName) {
			where := newPlace()
			var server int // process of the API server, if it stands still
			args := []string{"--churn", "2/s"}
			if phase == record.PhaseFault {
				args = append(args, "--fault", "pause-scaler:100ms@steady", "--fault", "api-server-gone:3s@steady")
			}
			if phase == record.PhaseChange {
				args = append(args, "--change", "5/s:meshwide", "--change-duration", "10s")
			}
			session := ladder(where, args...)
			second := place{state: where.state, out: filepath.Join(where.out, "reference-permissive-10")}
			Eventually(session.Err, "2m").Should(gbytes.Say("run 2 of 2"))
			switch phase {
			case "":
				Eventually(session.Err).Should(gbytes.Say("starting kube-controller-manager"))
			case record.PhaseChurn:
				// It is as short as steady, but for an API server that does not answer.
				Eventually(second.phase, "2m").Should(BeElementOf(record.PhaseSettle, record.PhaseSteady, record.PhaseChurn))
				server = where.child("kube-apiserver")
				Expect(syscall.Kill(server, syscall.SIGSTOP)).To(Succeed())
				fallthrough
			default:
				second.reach(session, phase)
			}
			sockets := where.sockets(session)
			interrupt(session)
			if server != 0 {
				Expect(syscall.Kill(server, syscall.SIGCONT)).To(Succeed())
			}
			Expect(wait(session)).To(Equal(exitInterrupted))
			where.expectNothingLeft(sockets...)

			runs, err := record.Read(where.out)
			Expect(err).NotTo(HaveOccurred())
			Expect(statuses(runs)).To(Equal([]string{"reference-permissive-10 interrupted", "reference-permissive-20 completed"}))
			Expect(runsOf(session)).To(ContainElement(HaveField("Name", "reference-permissive-20")), "what was measured is printed")
		},
		// The phases of every run are in the specs of ctrl-C.
		Entry("while its cluster starts", record.PhaseName("")),
		Entry("in change", record.PhaseChange),
		Entry("in churn", record.PhaseChurn),
		Entry("in a fault", record.PhaseFault),
	)

	It("continues after a run that did not converge, and reports it at the end", func() {
		where := newPlace()
		session := ladder(where, "--pods", "10,20", "--converge-timeout", "2s", "--start-delay", "3s")
		Expect(wait(session)).To(Equal(exitMissed))
		Expect(session.Err).To(gbytes.Say(`2 of 2 runs \(reference-permissive-10, reference-permissive-20\): the mesh did not converge`))
		for _, run := range runsOf(session) {
			Expect(run.Status).To(Equal(record.StatusUnconverged))
			Expect(*run.Pods.Converged).To(BeZero())
			Expect(run.Latencies.CompleteConfiguration.Lost).To(BeEquivalentTo(run.PodCount()))
			Expect(run.Warnings).To(ContainElement(And(HaveField("Reason", record.ReasonUnconverged), HaveField("Detail", Or(ContainSubstring("pods are not ready"), ContainSubstring("0 pods are there")))))) // none came yet
		}
		where.expectNothingLeft()
	})
})

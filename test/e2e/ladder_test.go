//go:build e2e

package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/pkg/record"
)

// exitMissed is the exit code of what finished and did not converge.
const exitMissed = 3

// runsOf returns the runs that a scaler has printed as JSON.
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

// arrivals returns the times at which the pods of a run in this place were first seen, in order.
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

var _ = Describe("a ladder that does not go well", func() {
	ladder := func(where place, args ...string) *gexec.Session {
		return where.rollout(0, append([]string{"--pods", "20,10", "--control-plane", "reference", "--settle", "1s", "--steady", "2s"}, args...)...)
	}

	DescribeTable("is interrupted in its second run, and leaves readable records and nothing else",
		func(phase record.PhaseName) {
			where := newPlace()
			var args []string
			if phase == record.PhaseFault {
				args = append(args, "--churn", "2/s", "--fault", "pause-scaler:100ms@steady", "--fault", "api-server-gone:3s@steady")
			}
			session := ladder(where, args...)
			second := place{state: where.state, out: filepath.Join(where.out, "reference-permissive-10")}
			Eventually(session.Err, "2m").Should(gbytes.Say("run 2 of 2"))
			if phase == "" {
				Eventually(session.Err).Should(gbytes.Say("starting kube-controller-manager"))
			} else {
				second.reach(session, phase)
			}
			sockets := where.sockets(session)
			interrupt(session)
			Expect(wait(session)).To(Equal(exitInterrupted))
			where.expectNothingLeft(sockets...)

			runs, err := record.Read(where.out)
			Expect(err).NotTo(HaveOccurred())
			Expect(statuses(runs)).To(Equal([]string{"reference-permissive-10 interrupted", "reference-permissive-20 completed"}))
			Expect(runsOf(session)).To(ContainElement(HaveField("Name", "reference-permissive-20")), "what was measured is printed")
		},
		// The phases of every run are in the specs of signals.
		Entry("while its cluster starts", record.PhaseName("")),
		Entry("in a fault", acceptance, record.PhaseFault),
	)

	It("continues after a run that did not converge, and reports it at the end", func() {
		where := newPlace()
		session := ladder(where, "--pods", "10,20", "--converge-timeout", "2s", "--start-delay", "3s")
		Expect(wait(session)).To(Equal(exitMissed))
		Expect(session.Err).To(gbytes.Say(`2 of 2 runs \(reference-permissive-10, reference-permissive-20\): the mesh did not converge`))
		for _, run := range runsOf(session) {
			Expect(run.Status).To(Equal(record.StatusUnconverged))
			Expect(known(run.Pods.Converged)).To(BeZero())
			Expect(known(run.Latencies.CompleteConfiguration).Lost).To(BeEquivalentTo(run.PodCount()))
			Expect(run.Warnings).To(ContainElement(And(HaveField("Reason", record.ReasonUnconverged), HaveField("Detail", Or(ContainSubstring("pods are not ready"), ContainSubstring("0 pods are there")))))) // none came yet
		}
		where.expectNothingLeft()
	})
})

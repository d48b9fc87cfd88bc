//go:build e2e

package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/pkg/record"
)

// Both modes, with few changes; all knobs with 200 are in docs/results/fidelity.md.
var _ = Describe("a simulated sidecar compared with a real Envoy", func() {
	// Serial: times are compared.
	It("sends and holds the same", Serial, func() {
		where := newPlace()
		session := where.start("calibrate", "--fidelity", "--cases", "permissive,strict", "--starts", "1", "--changes", "8", "-o", "json")
		Expect(wait(session)).To(Equal(exitDone))
		var f record.Fidelity
		Expect(json.Unmarshal(session.Out.Contents(), &f)).To(Succeed())
		Expect(f.Kind).To(Equal(record.FidelityKind))
		Expect(f.Cases).To(HaveLen(2))
		for _, c := range f.Cases {
			// Requests differ where istiod answered the two in different parts, which it does at times on a busy
			// machine, or where a listener had drained: each such case is counted, and explained.
			excused := map[string]int{}
			for _, d := range c.Differences {
				if about, ok := strings.CutSuffix(d.About, " requests"); ok && about != "start" && about != "reconnect" {
					excused["changes"] += d.Count
				} else if ok {
					excused[about] += d.Count
				}
			}
			Expect(c.Start).To(Equal(record.Sameness{Compared: 1, Same: 1 - excused["start"]}), c.Name)
			// What one of the two has yet to send is compared with the next change: two may differ at once.
			Expect(c.Changes).To(And(HaveField("Compared", 8), HaveField("Same", BeNumerically(">=", 8-2*excused["changes"])), HaveField("Silent", BeNumerically("<", 8))), "%s: %+v", c.Name, c.Changes)
			Expect(c.Reconnect).To(Equal(record.Sameness{Compared: 1, Same: 1 - excused["reconnect"]}), c.Name)
			for _, types := range []map[string]record.HeldResources{c.Resources, c.AfterChanges} {
				Expect(types).To(HaveKey("LDS"), c.Name)
				for kind, held := range types {
					Expect(held.SameNames()).To(BeTrue(), "%s %s: %+v", c.Name, kind, held)
				}
			}
			Expect(known(c.BytesRatio)).To(BeNumerically("~", 1, 0.02), c.Name)
			Expect(c.Differences).To(HaveEach(HaveField("Explained", Not(BeEmpty()))), c.Name)
		}
		where.expectNothingLeft()
	})

	DescribeTable("leaves nothing behind when it is ended",
		func(end func(*gexec.Session), code int) {
			where := newPlace()
			session := where.start("calibrate", "--fidelity", "--cases", "strict")
			Eventually(session.Err).Should(gbytes.Say("starting istiod"))
			end(session)
			Expect(wait(session)).To(Equal(code))
			Expect(wait(where.start("cleanup"))).To(Equal(exitDone))
			where.expectNothingLeft()
			Expect(filepath.Glob(filepath.Join(where.state, "*", "*"))).To(BeEmpty())
		},
		Entry("by ctrl-C", acceptance, interrupt, exitInterrupted),
		Entry("by kill -9", func(s *gexec.Session) { s.Kill() }, 128+int(syscall.SIGKILL)),
	)

	It("is not begun with an Envoy of another version", func() {
		where := newPlace()
		session := where.start("calibrate", "--fidelity", "--envoy", "/bin/true")
		Expect(wait(session)).To(Equal(exitFailed))
		Expect(session.Err.Contents()).To(ContainSubstring("/bin/true"))
		where.expectNothingLeft()
	})
})

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/internal/analyse/assess"
)

var _ = Describe("an assessment", func() {
	// Of one version twice, since another istiod takes minutes to build.
	It("that is interrupted goes on with the step that was cut short, and answers again from its records", func() {
		where := newPlace()
		args := []string{
			"assess", "--mesh", "sample:bookinfo", "--scale", "2", "--from", "1.31.0", "--to", "1.31.0", "--to-env", "PILOT_ENABLE_CDS_CACHE=true", "--control-plane-memory", "1Gi", "--dilate", "1", "--out", where.out, "-o", "json",
			"--baseline", "1s", "--settle", "3s", "--steady", "1s", "--pause", "1s", "--canary", "50%,100%", "--start-delay", "1s", "--converge-timeout", "90s",
		}
		session := where.start(args...)
		Eventually(session.Err, "2m").Should(gbytes.Say("to, the same with 1.31.0"))
		Eventually(session.Err, "1m").Should(gbytes.Say("rollout"))
		interrupt(session)
		Expect(wait(session)).To(Equal(exitInterrupted))
		Expect(session.Err).To(gbytes.Say("not complete: the same command with --out " + where.out + " goes on"))
		where.expectNothingLeft()

		session = where.start(args...)
		Expect(wait(session)).To(Equal(exitDone))
		where.expectNothingLeft()
		var a assess.Assessment
		Expect(json.Unmarshal(session.Out.Contents(), &a)).To(Succeed())
		Expect(a.Verdict).To(Equal(assess.Go), "%v", a.Reasons)
		Expect(a.Worst).To(HaveField("MemoryBytes", BeNumerically(">", 50e6)))
		Expect(a.Differences).To(And(HaveField("Sidecars", 12), HaveField("Groups", BeEmpty())))
		Expect(filepath.Glob(filepath.Join(where.out, "from-interrupted-*"))).To(BeEmpty(), "the first step was done")
		Expect(filepath.Glob(filepath.Join(where.out, "to-interrupted-*"))).To(HaveLen(1))
		values, err := os.ReadFile(filepath.Join(where.out, assess.ValuesFile))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(values)).To(ContainSubstring("# Verdict: GO\n"))

		for _, command := range []string{"assess", "report"} {
			again := where.start(command, where.out, "-o", "json")
			Expect(wait(again)).To(Equal(exitDone))
			Expect(again.Out.Contents()).To(MatchJSON(session.Out.Contents()))
		}
	})

	It("of a mesh with pods in ambient mode and others has its ztunnels and waypoints, and no waves", func() {
		where := newPlace()
		file := filepath.Join(filepath.Dir(where.state), "mesh.yaml")
		Expect(wait(where.start("capture", "testdata/ambient.yaml", "--output-file", file))).To(Equal(exitDone))
		session := where.start("assess", "--mesh", file, "--dataplane", "mixed", "--from", "1.31.0", "--to", "1.31.0", "--to-env", "PILOT_ENABLE_CDS_CACHE=true", "--control-plane-memory", "1Gi", "--dilate", "1", "--out", where.out, "-o", "json", "--baseline", "1s", "--settle", "3s", "--steady", "1s")
		Expect(wait(session)).To(Equal(exitDone))
		where.expectNothingLeft()
		var a assess.Assessment
		Expect(json.Unmarshal(session.Out.Contents(), &a)).To(Succeed())
		Expect(a.Verdict).To(Equal(assess.Go), "%v", a.Reasons)
		Expect(a.Differences).To(And(HaveField("Sidecars", 10), HaveField("Ztunnels", 4), HaveField("Waypoints", 2), HaveField("Groups", BeEmpty())))
		Expect(a.Checks).To(ContainElement(And(HaveField("Name", "upgrade"), HaveField("Outcome", assess.NotChecked))))
		Expect(filepath.Glob(filepath.Join(where.out, "upgrade"))).To(BeEmpty())
	})
})

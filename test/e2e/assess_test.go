//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/internal/analyse/assess"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/series/rehearsal"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

var _ = Describe("an assessment", func() {
	// Of one version twice, since another istiod takes minutes to build.
	It("that is interrupted goes on with the step that was cut short, and answers again from its records", func(ctx SpecContext) {
		where := newPlace()
		args := []string{
			"assess", "--mesh", "sample:bookinfo", "--scale", "2", "--from", "1.31.0", "--to", "1.31.0", "--to-env", "PILOT_ENABLE_CDS_CACHE=true", "--control-plane-memory", "1Gi", "--set", "controlPlane.replicas=2", "--dilate", "1", "--out", where.out, "-o", "json",
			"--baseline", "1s", "--settle", "3s", "--steady", "1s", "--pause", "1s", "--canary", "50%,100%", "--start-delay", "1s", "--converge-timeout", "90s",
		}
		session := where.start(args...)
		Eventually(session.Err, "2m").Should(gbytes.Say("to, the same with 1.31.0"))
		Eventually(session.Err, "1m").Should(gbytes.Say("rollout"))
		interrupt(session)
		Expect(wait(session)).To(Equal(exitInterrupted))
		Expect(session.Err).To(gbytes.Say("not complete: the same command with --out " + where.out + " resumes it"))
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

		By("restarting one of two replicas")
		facts, err := rehearsal.Read(where.out)
		Expect(err).NotTo(HaveOccurred())
		restart := facts.Onto.Run.Faults[0]
		Expect(restart.Name).To(Equal(string(scenario.RestartReplica)))
		Expect(known(known(restart.ControlPlane).Restarts)).To(BeEquivalentTo(1))
		Expect(*restart.Replicas["istiod-0"]).To(And(HaveField("Serves", true), HaveField("After", 0)))
		Expect(*restart.Replicas["istiod-1"]).To(And(HaveField("Serves", true), HaveField("After", 12)))

		By("setting what istioctl accepts, which refuses values that it does not know")
		speed, measured := facts.Onto.Run.Environment.Processor.Speed()
		Expect(measured).To(BeTrue())
		facts.Captured.Installed, facts.Captured.NodeSpeed, facts.Captured.Requests = true, &speed, map[string]string{"cpu": "1m"}
		facts.Onto.Run.Environment.ControlPlane.MemoryLimitBytes = int64(a.Worst.MemoryBytes)
		needs := assess.Judge(facts)
		Expect(needs.Settings).To(ConsistOf(HaveField("Path", "resources.limits.memory"), HaveField("Path", "resources.requests.memory"), HaveField("Path", "resources.requests.cpu")))
		rendered, err := renderIstiod(ctx, needs.Values())
		Expect(err).NotTo(HaveOccurred(), rendered)
		for _, s := range needs.Settings {
			Expect(rendered).To(ContainSubstring(s.Path[strings.LastIndexByte(s.Path, '.')+1:]+": "+s.Value), s.Path)
		}
		_, err = renderIstiod(ctx, strings.Replace(needs.Values(), "resources:", "resource:", 1))
		Expect(err).To(HaveOccurred())
	})

	It("of a mesh with pods in ambient mode and others moves its ztunnels, then its waypoints, then its sidecars", acceptance, func() {
		where := newPlace()
		file := filepath.Join(filepath.Dir(where.state), "mesh.yaml")
		Expect(wait(where.start("capture", "testdata/ambient.yaml", "--output-file", file))).To(Equal(exitDone))
		session := where.start("assess", "--mesh", file, "--from", "1.31.0", "--to", "1.31.0", "--to-env", "PILOT_ENABLE_CDS_CACHE=true", "--control-plane-memory", "1Gi", "--dilate", "1", "--out", where.out, "-o", "json", "--baseline", "1s", "--settle", "3s", "--steady", "1s", "--pause", "1s")
		for _, step := range []string{"from", "to"} { // each is a run
			Eventually(session.Err, "2m").Should(gbytes.Say("\n" + step + ", .*: completed"))
		}
		Expect(wait(session)).To(Equal(exitDone))
		where.expectNothingLeft()
		var a assess.Assessment
		Expect(json.Unmarshal(session.Out.Contents(), &a)).To(Succeed())
		Expect(a.Verdict).To(Equal(assess.Go), "%v", a.Reasons)
		Expect(a.Differences).To(And(HaveField("Sidecars", 10), HaveField("Ztunnels", 4), HaveField("Waypoints", 2), HaveField("Groups", BeEmpty())))
		Expect(a.Checks).To(ContainElement(And(HaveField("Name", "upgrade"), HaveField("Outcome", assess.Holds), HaveField("Text", HavePrefix("10 pods moved in 3 waves, nothing was lost")))))

		runs, err := record.Read(filepath.Join(where.out, "upgrade"))
		Expect(err).NotTo(HaveOccurred())
		Expect(runs).To(HaveLen(1))
		Expect(runs[0].UpgradeStages()).To(Equal([]string{"start", "wave-1", "wave-2", "wave-3", "remove", "after"}))
		for stage, unit := range map[string]record.UpgradeUnit{
			"wave-1": {Kind: record.UpgradeNodes, Name: "ztunnel", Pods: 4},
			"wave-2": {Kind: record.UpgradeWaypoints, Name: "waypoint", Pods: 2},
			"wave-3": {Kind: record.UpgradeNamespace, Name: "legacy", Namespaces: []string{"legacy"}, Pods: 4},
		} {
			of := known(runs[0].Upgrade.Stages[stage])
			Expect(of.Moved).To(Equal([]record.UpgradeUnit{unit}))
			Expect(known(of.Replaced)).To(Equal(unit.Pods), stage)
			Expect(known(known(of.To).Responses)).To(BeNumerically(">=", unit.Pods), stage)
			Expect(runs[0].Phase(record.UpgradePhase(stage)).EndedBy).To(Equal(record.EndedByConverged), stage)
		}
	})
})

// renderIstiod returns what istioctl of the default version renders with values of the chart of istiod, or its error message.
func renderIstiod(ctx context.Context, values string) (string, error) {
	GinkgoHelper()
	paths, err := component.Paths(ctx, component.Options{CacheDir: os.Getenv("SCALER_CACHE_DIR"), Progress: func(msg string) { GinkgoWriter.Println(msg) }}, component.Istioctl)
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(GinkgoT().TempDir(), "operator.yaml")
	operator := "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec:\n  profile: minimal\n  values:\n    pilot:\n      " + strings.ReplaceAll(values, "\n", "\n      ")
	Expect(os.WriteFile(file, []byte(operator), 0o600)).To(Succeed())
	out, err := exec.CommandContext(ctx, paths[component.Istioctl], "manifest", "generate", "-f", file).CombinedOutput()
	return string(out), err
}

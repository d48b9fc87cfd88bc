//go:build e2e

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/pkg/record"
)

// Serial: its figures are compared with istiod's own.
var _ = Describe("30 pods without sidecars on 3 nodes", Serial, func() {
	It("are served by the ztunnels of their nodes in both modes", func() {
		const pods, nodes, services, probes = 30, 3, 3, 4
		where := newPlace()
		session := where.start("rollout", "--pods", "30", "--dataplane", "ambient", "--pods-per-node", "10", "--mode", "both",
			"--baseline", "2s", "--settle", "2s", "--steady", "5s", "--probes", "4", "--no-calibrate",
			"--fault", "reset-streams:50%@steady", "--out", where.out, "-o", "json")
		Eventually(where.phaseOf("istiod-ambient-strict-30")).WithTimeout(2 * time.Minute).WithPolling(100 * time.Millisecond).Should(Equal(record.PhaseSteady))
		own := ambientz(where)
		Expect(wait(session)).To(Equal(exitDone))
		where.expectNothingLeft(nil)
		var list record.RunList
		Expect(json.Unmarshal(session.Out.Contents(), &list)).To(Succeed())
		runs := list.Items
		Expect(runs).To(HaveLen(2))
		for _, run := range runs {
			By(run.Name)
			Expect(run.Status).To(Equal(record.StatusCompleted))
			Expect(run.Spec.Dataplane).To(Equal("ambient"))
			Expect(run.Environment.Knobs.Scope).To(BeEmpty())
			Expect(run.Environment.ControlPlane.Settings).To(HaveKeyWithValue("PILOT_ENABLE_AMBIENT", "true"))
			Expect(*run.Proxies).To(Equal(record.Proxies{Name: "ztunnel", Nodes: nodes, Ready: new(nodes)}))
			Expect(*run.Pods.Ready).To(Equal(pods))
			Expect(*run.Pods.Converged).To(Equal(pods))
			// What they hold, and what istiod counts, is exactly what is expected.
			for _, w := range run.Warnings {
				Expect(w.Reason).NotTo(BeElementOf(record.ReasonCountsDiffer, record.ReasonUnexpectedResources, record.ReasonMissingResources), w.Text)
			}
			Expect(*run.XDS.Nacks).To(BeZero())
			Expect(run.XDS.Responses["Address"]).To(BeNumerically(">", 0))
			Expect(run.XDS.Responses["Authorization"]).To(BeNumerically(">", 0))
			Expect(run.XDS.Responses).NotTo(HaveKey("CDS"))
			// Each ztunnel has a certificate of each account on its node, of which there are no
			// more than services.
			Expect(*run.Certificates.Issued).To(And(BeNumerically(">=", services), BeNumerically("<=", nodes*services+probes)))
			Expect(*run.Certificates.Failed).To(BeZero())
			for _, kind := range []record.ChangeKind{record.EndpointAdd, record.EndpointRemove, record.EndpointHealth, record.PolicyChange, record.ServiceChange} {
				Expect(run.Latencies.Push[kind].Count).To(BeEquivalentTo(probes*nodes), string(kind))
				Expect(run.Latencies.Push[kind].Lost).To(BeZero(), string(kind))
			}
			Expect(run.Latencies.Push).NotTo(HaveKey(record.RouteChange))
			Expect(run.Latencies.CompleteConfiguration).To(BeNil(), "pods have no sidecar that starts")
			Expect(*run.Faults[0].Reconnected).To(Equal(2)) // half of three
		}
		// istiod itself says that there is what its ztunnels hold.
		strict := runs[1]
		Expect(strict.Spec.Mode).To(Equal("strict"))
		Expect(len(own.Workloads) + len(own.Services)).To(BeEquivalentTo(strict.XDS.ConfigurationResources["Address"]))
		Expect(own.Policies).To(HaveLen(int(strict.XDS.ConfigurationResources["Authorization"])))
		var hbone int
		for _, w := range own.Workloads {
			if w.TunnelProtocol == "HBONE" {
				hbone++
				Expect(w.Status).To(BeElementOf("", "HEALTHY"), w.Name)
			}
		}
		Expect(hbone).To(Equal(pods))

		report := where.start("report", where.out)
		Expect(wait(report)).To(Equal(exitDone))
		Expect(report.Out).To(gbytes.Say("ambient"))
	})
})

// phaseOf is the phase that a run of this place is in, "" when it is in none.
func (p place) phaseOf(name string) func() record.PhaseName {
	return func() record.PhaseName {
		runs, _ := record.Read(p.out) // what is being written is read the next time
		for _, run := range runs {
			if n := len(run.Phases); run.Name == name && n > 0 && run.Phases[n-1].End == nil {
				return run.Phases[n-1].Name
			}
		}
		return ""
	}
}

// ambient is what istiod's debug endpoint says of ambient mode.
type ambient struct {
	Workloads []struct{ Name, Status, TunnelProtocol string }
	Services  []struct{ Hostname string }
	Policies  []struct{ Name string }
}

// ambientz asks the istiod of a place, which is found by its working directory.
func ambientz(where place) (answer ambient) {
	GinkgoHelper()
	folders, err := filepath.Glob("/proc/[0-9]*/cwd")
	Expect(err).NotTo(HaveOccurred())
	var address string
	for _, folder := range folders {
		if at, err := os.Readlink(folder); err != nil || !strings.HasPrefix(at, where.out) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(folder), "cmdline"))
		args := strings.Split(string(line), "\x00")
		for i, arg := range args {
			if arg == "--httpAddr" {
				address = args[i+1]
			}
		}
	}
	Expect(address).NotTo(BeEmpty(), "no istiod runs")
	response, err := http.Get("http://" + address + "/debug/ambientz")
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusOK), string(body))
	Expect(json.Unmarshal(body, &answer)).To(Succeed())
	return answer
}

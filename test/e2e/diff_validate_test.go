//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("a diff that has a real Envoy validate what proxies hold", func() {
	// Sidecars, a gateway, a waypoint and ztunnels: filters that Istio's Envoy alone has are cut out of all but the last.
	It("names the resources that it rejects and why, and counts the others", acceptance, func(ctx SpecContext) {
		where := newPlace()
		mesh := func(name string, objects ...string) string {
			file := filepath.Join(filepath.Dir(where.state), name)
			Expect(wait(where.start(append([]string{"capture", "--output-file", file}, objects...)...))).To(Equal(exitDone))
			return file
		}
		before, after := mesh("before.yaml", "testdata/ambient.yaml"), mesh("after.yaml", "testdata/ambient.yaml", "testdata/rejected.yaml")
		result := where.diff(exitMissed, "--mesh", before, "--mesh-to", after, "--validate-with", envoy(ctx), "--fail-on", "rejected")
		v := known(result.Validation)
		Expect(v.Envoy).To(HavePrefix("1."))
		rejected := map[string]int{} // sidecars of the second side that hold it, each with an address of its own in main_internal
		for _, r := range v.Rejected {
			Expect(r.Reason).To(ContainSubstring("fill timer must be >= 50ms"))
			Expect(r.From).To(BeZero())
			rejected[r.Type+" "+r.Name] += r.To
		}
		Expect(rejected).To(Equal(map[string]int{"LDS virtualInbound": 3, "LDS main_internal": 3, "LDS connect_terminate": 3}))

		By("counting the resources of both sides")
		type content struct{ kind, name, message string }
		all, validated := map[content]bool{}, 0
		for _, side := range []string{"from", "to"} {
			runs, err := record.Read(filepath.Join(where.out, side))
			Expect(err).NotTo(HaveOccurred())
			held, err := record.ReadConfiguration(runs[0].Dir)
			Expect(err).NotTo(HaveOccurred())
			for _, r := range held.Resources {
				one := content{r.Type, r.Name, string(r.Message)}
				if !all[one] && strings.Contains("CDS EDS LDS RDS", r.Type) { // the one extension is a module
					validated++
				}
				all[one] = true
			}
		}
		Expect(v.Whole + v.Cut).To(Equal(validated))
		Expect(v.NotValidated).To(Equal(len(all) - validated))
		Expect([]int{v.Whole, v.Cut, v.NotValidated}).To(HaveEach(BeNumerically(">", 0)))
	})
})

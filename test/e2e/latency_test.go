//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/latency"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

var _ = Describe("latency through sidecars", func() {
	var spec latency.Spec
	BeforeEach(func() {
		spec = latency.DefaultSpec()
		load := &spec.Latency
		load.RPS, load.Duration, load.Warmup, load.Rounds = []float64{50}, 1e9, 200e6, 1
		spec.State, spec.Out = GinkgoT().TempDir(), filepath.Join(GinkgoT().TempDir(), "runs")
		spec.Programs = component.Options{
			BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR"), Envoy: os.Getenv("SCALER_ENVOY"),
		}
		DeferCleanup(func() {
			for _, folder := range []string{"latency", "clusters"} {
				left, _ := os.ReadDir(filepath.Join(spec.State, folder)) // not made, or empty
				Expect(left).To(BeEmpty())
			}
		})
	})

	// A variant is measured only when its server saw the client's SPIFFE identity,
	// and plaintext was refused by a strict one and answered by a permissive one:
	// what was not is an error.
	for _, controlPlane := range []string{"istiod", "reference"} {
		It("is measured for every variant, of "+controlPlane, func(ctx SpecContext) {
			spec.ControlPlane.Name = controlPlane
			run, err := latency.Run(ctx, spec, latency.Progress{Log: func(msg string) { GinkgoWriter.Println(msg) }})
			Expect(err).NotTo(HaveOccurred())
			Expect(run.Environment.ControlPlane.Name).To(Equal(controlPlane))
			Expect(run.Rows).To(HaveLen(3))
			_, left, err := record.ReadAll(spec.Out)
			Expect(err).NotTo(HaveOccurred())
			Expect(left).To(HaveLen(1))
			Expect(left[0].Status).To(Equal(record.StatusCompleted))
			Expect(left[0].Rows).To(HaveLen(3))
			var printed strings.Builder
			Expect(report.PrintAll(&printed, "wide", nil, left)).To(Succeed())
			Expect(printed.String()).To(And(HavePrefix("latency: completed"), ContainSubstring(controlPlane)))
			Expect(filepath.Glob(filepath.Join(left[0].Dir, "logs", "*"))).NotTo(BeEmpty())
			for _, row := range run.Rows {
				Expect(row.Requests).To(BeEquivalentTo(50), row.Variant)
				Expect(row.ErrorKinds).To(BeEmpty(), row.Variant)
				if row.Variant == latency.VariantNone {
					Expect(row.Sidecars).To(BeNil())
					continue
				}
				Expect(known(row.Added).P50).NotTo(BeNil())
				Expect(known(row.Sidecars).Count).To(Equal(2))
				Expect(known(row.Sidecars).Workers).To(Equal(2))
				for _, tier := range known(row.Sidecars).Tiers {
					Expect(tier.Cores).To(BeNumerically(">", 0), tier.Tier)
					Expect(tier.MemoryBytes).To(BeNumerically(">", 10e6), tier.Tier)
				}
			}
		})
	}

	// Client and servers have a network namespace each, whose connections are redirected to Open Service
	// Mesh's Envoys. What is checked of them is in the record: nobody reports the caller in permissive mode.
	It("is measured where connections are redirected, of osm", acceptance, func(ctx SpecContext) {
		spec.ControlPlane.Name = "osm"
		if os.Geteuid() != 0 {
			_, err := latency.Run(ctx, spec, latency.Progress{})
			Expect(err).To(MatchError(ContainSubstring("want root")))
			return
		}
		run, err := latency.Run(ctx, spec, latency.Progress{Log: func(msg string) { GinkgoWriter.Println(msg) }})
		Expect(err).NotTo(HaveOccurred())
		Expect(run.Spec.Redirected).To(BeTrue())
		Expect(run.Checks).To(ConsistOf(
			record.LatencyCheck{Variant: "permissive", Plaintext: record.CheckRefused, NoCertificate: record.CheckRefused, OtherIdentity: record.CheckAnswered, Caller: record.CallerUnknown},
			record.LatencyCheck{Variant: latency.VariantStrict, Plaintext: record.CheckRefused, NoCertificate: record.CheckRefused, OtherIdentity: record.CheckRefused, Caller: record.CallerAllowed},
		))
		Expect(run.Rows).To(HaveLen(3))
		for _, row := range run.Rows {
			Expect(row.Requests).To(BeEquivalentTo(50), row.Variant)
			Expect(row.ErrorKinds).To(BeEmpty(), row.Variant)
			if row.Variant != latency.VariantNone {
				Expect(known(row.Added).P50).NotTo(BeNil(), row.Variant)
				Expect(known(row.Sidecars).Count).To(Equal(2))
				for _, tier := range known(row.Sidecars).Tiers {
					Expect(tier.Cores).To(BeNumerically(">", 0), tier.Tier)
				}
			}
		}
	})

	// The proxy is the user's. Without one, a stand-in shows that everything around it works: the rules,
	// what it reaches, its key, its token, its certificate, and the caller that it names.
	It("is measured with a given proxy, of linkerd", acceptance, func(ctx SpecContext) {
		spec.ControlPlane.Name = "linkerd"
		var err error
		spec.Latency.Proxy, err = os.Executable()
		Expect(err).NotTo(HaveOccurred())
		if given := os.Getenv("SCALER_LINKERD_PROXY"); given != "" {
			spec.Latency.Proxy = given
		}
		spec.Latency.Variants = nil
		spec, err = latency.New(spec, scenario.New(spec.Scenario))
		Expect(err).NotTo(HaveOccurred())
		Expect(spec.Latency.Variants).To(HaveExactElements(latency.VariantNone, "automatic"))
		if os.Geteuid() != 0 {
			_, err := latency.Run(ctx, spec, latency.Progress{})
			Expect(err).To(MatchError(ContainSubstring("want root")))
			return
		}
		spec.Latency.Topology, spec.Latency.Chain, spec.Latency.Servers = latency.ChainTopology, scenario.List[scenario.Duration]{0, 1e6}, 2
		run, err := latency.Run(ctx, spec, latency.Progress{Log: func(msg string) { GinkgoWriter.Println(msg) }})
		Expect(err).NotTo(HaveOccurred())
		digest, err := component.Digest(spec.Latency.Proxy)
		Expect(err).NotTo(HaveOccurred())
		Expect(run.Environment.Programs).To(HaveKeyWithValue("linkerd2-proxy", record.Program{Source: "given", Digest: digest}))
		Expect(run.Checks).To(ConsistOf(record.LatencyCheck{Variant: "automatic", Plaintext: record.CheckAnswered, Caller: record.CallerSeen}))
		Expect(run.Rows).To(HaveLen(2))
		for _, row := range run.Rows {
			Expect(row.Requests).To(BeEquivalentTo(50), row.Variant)
			Expect(row.ErrorKinds).To(BeEmpty(), row.Variant)
		}
		Expect(known(run.Rows[1].Sidecars).Count).To(Equal(5))
	})

	It("is measured along a chain, over HTTP/2", func(ctx SpecContext) {
		spec.ControlPlane.Name, spec.Latency.Variants, spec.Latency.HTTP = "reference", []string{latency.VariantStrict}, 2
		spec.Latency.Topology, spec.Latency.Chain, spec.Latency.Servers = latency.ChainTopology, scenario.List[scenario.Duration]{5e6, 5e6}, 2
		run, err := latency.Run(ctx, spec, latency.Progress{})
		Expect(err).NotTo(HaveOccurred())
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(run.Rows[0].ErrorKinds).To(BeEmpty())
		Expect(known(run.Rows[0].Sidecars).Count).To(Equal(5))
	})

	DescribeTable("shows the words of an Envoy", func(ctx SpecContext, arguments, words string) {
		paths, err := component.Paths(ctx, spec.Programs, component.Envoy)
		Expect(err).NotTo(HaveOccurred())
		// It answers when asked for its version, as the real one does.
		script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && exec '%s' --version\n%s\n", paths[component.Envoy], fmt.Sprintf(arguments, paths[component.Envoy]))
		spec.Programs.Envoy = filepath.Join(GinkgoT().TempDir(), "envoy")
		Expect(os.WriteFile(spec.Programs.Envoy, []byte(script), 0o755)).To(Succeed())
		spec.ControlPlane.Name, spec.Latency.Variants = "reference", []string{latency.VariantStrict}
		run, err := latency.Run(ctx, spec, latency.Progress{})
		Expect(err).To(MatchError(ContainSubstring(words)))
		Expect(run.Status).To(BeEmpty())
		_, left, err := record.ReadAll(spec.Out)
		Expect(err).NotTo(HaveOccurred())
		Expect(left[0].Status).To(Equal(record.StatusFailed))
		Expect(left[0].Reason).NotTo(BeEmpty())
	},
		Entry("that does not start", "echo no such luck >&2; exit 3 # %s", "no such luck"),
		Entry("that refuses its configuration", "exec '%s' \"$@\" --config-yaml 'unheard_of: 1'", "unheard_of"),
	)
})

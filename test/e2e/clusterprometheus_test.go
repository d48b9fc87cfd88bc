//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/measure/clusterprometheus"
	"scaler.mesh/scaler/internal/process"
)

// clusterPrometheusConfig has a Prometheus scrape itself, as a pod.
const clusterPrometheusConfig = `
global: {scrape_interval: 1s}
scrape_configs:
- job_name: kubernetes-pods
  static_configs:
  - targets: [%[1]q]
    labels: {namespace: istio-system, pod: istiod-7c9-abcde, app: istiod}
`

var _ = Describe("an existing Prometheus", func() {
	It("is asked for the history of a control plane, until it ends", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		group, err := process.OpenGroup(filepath.Join(dir, "group"), process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(group.Stop(ctx)).To(Succeed()) })
		address, err := process.FreeAddress()
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(dir, "prometheus.yml")
		Expect(os.WriteFile(file, fmt.Appendf(nil, clusterPrometheusConfig, address), 0o600)).To(Succeed())
		server, err := group.Start(process.Spec{
			Name: "prometheus", Path: prometheus, Dir: dir, Log: filepath.Join(dir, "prometheus.log"),
			Args: []string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address},
		})
		Expect(err).NotTo(HaveOccurred())

		options := clusterprometheus.Options{
			Address: clusterprometheus.Address{URL: "http://" + address},
			Program: clusterprometheus.Program{Namespace: "istio-system", Deployment: "istiod", Container: "discovery"},
		}
		var source *clusterprometheus.Source
		Eventually(func() error {
			source = clusterprometheus.Look(ctx, options)
			return source.Err
		}).WithContext(ctx).Should(Succeed())
		_, _, all, err := source.History(ctx, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).NotTo(BeEmpty())
		for _, r := range all { // it takes every expression, and has no step with samples yet, unless one has just ended
			Expect(r.Err).To(Or(BeNil(), MatchError(HavePrefix("it has no "))), r.Name)
		}

		By("asking for pods that it does not have")
		options.Program.Deployment = "other"
		Expect(clusterprometheus.Look(ctx, options).Err).To(MatchError(ContainSubstring("of pods istio-system/other-")))

		By("ending it")
		Expect(server.Stop(ctx)).To(Succeed())
		_, _, _, err = source.History(ctx, time.Hour)
		Expect(err).To(MatchError(ContainSubstring("connection refused")))
	}, SpecTimeout(2*time.Minute))
})

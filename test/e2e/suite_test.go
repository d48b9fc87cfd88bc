//go:build e2e

package e2e

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/pkg/component"
)

var (
	scaler     string // the program under test
	prometheus string // for a second look at time series
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	RunSpecs(t, "scaler", Label("e2e"))
}

var _ = BeforeSuite(func(ctx SpecContext) {
	programs, err := component.Paths(ctx, component.Options{
		BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR"),
		Progress: func(msg string) { GinkgoWriter.Println(msg) },
	}, component.Etcd, component.KubeAPIServer, component.KubeControllerManager, component.KubeScheduler,
		component.Kwok, component.Istiod, component.Prometheus)
	Expect(err).NotTo(HaveOccurred())
	prometheus = programs[component.Prometheus]
	scaler, err = gexec.Build("scaler.mesh/scaler/cmd/scaler")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)
}, NodeTimeout(40*time.Minute))

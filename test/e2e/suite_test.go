//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/component"
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

// The specs may run in several processes side by side, which share what is built.
var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	programs, err := component.Paths(ctx, component.Options{
		BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR"),
		Progress: func(msg string) { GinkgoWriter.Println(msg) },
	}, component.Etcd, component.KubeAPIServer, component.KubeControllerManager, component.KubeScheduler,
		component.Kwok, component.Istiod, component.Prometheus)
	Expect(err).NotTo(HaveOccurred())
	scaler, err = gexec.Build("scaler.mesh/scaler/cmd/scaler")
	Expect(err).NotTo(HaveOccurred())
	return []byte(scaler + "\n" + programs[component.Prometheus])
}, func(built []byte) {
	scaler, prometheus, _ = strings.Cut(string(built), "\n")
}, NodeTimeout(40*time.Minute))

var _ = SynchronizedAfterSuite(func() {}, gexec.CleanupBuildArtifacts)

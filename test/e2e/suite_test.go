//go:build e2e

package e2e

import (
	"fmt"
	"os"
	ossignal "os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/test/hidden"
	"scaler.mesh/scaler/test/linkerdproxy"
)

var (
	scaler     string // the program under test
	prometheus string // for a second look at time series
)

// binaryVariable is the program to test, if it is not to be built.
const binaryVariable = "SCALER_E2E_BINARY"

// acceptance marks specs that compare several runs with each other or take long, of what a shorter spec
// tries on the same programs. "hack/test.sh --all" runs them, continuous integration does not.
var acceptance = Label("acceptance")

// TestMain lets the test binary be the programs that specs start of packages that start their own
// executable: a cluster's owner, a proxy of Linkerd, and scaler's hidden commands.
func TestMain(m *testing.M) {
	owner := os.Getenv(ownerVariable)
	switch {
	case owner != "":
		if err := ownCluster(strings.Split(owner, "|")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case linkerdproxy.Wanted():
		os.Exit(linkerdproxy.Main())
	default:
		os.Exit(hidden.Main(m))
	}
}

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	// A look at a record or at all processes takes milliseconds of the processors that the other specs need.
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	// A process starts with the signals ignored that its parent ignores, as below nohup,
	// but not with those that its parent handles.
	hangups := make(chan os.Signal, 1)
	ossignal.Notify(hangups, syscall.SIGHUP)
	defer ossignal.Stop(hangups)
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
	if scaler = os.Getenv(binaryVariable); scaler == "" {
		// As it is released, and for images without libraries.
		scaler, err = gexec.BuildWithEnvironment("scaler.mesh/scaler/cmd/scaler", []string{"CGO_ENABLED=0"})
		Expect(err).NotTo(HaveOccurred())
	}
	return []byte(scaler + "\n" + programs[component.Prometheus])
}, func(built []byte) {
	scaler, prometheus, _ = strings.Cut(string(built), "\n")
}, NodeTimeout(40*time.Minute))

var _ = SynchronizedAfterSuite(func() {}, gexec.CleanupBuildArtifacts)

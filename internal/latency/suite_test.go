package latency

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/test/hidden"
	"scaler.mesh/scaler/test/linkerdproxy"
)

// TestMain lets the tests' own program be those that scaler starts of itself, and a proxy of Linkerd.
func TestMain(m *testing.M) {
	if linkerdproxy.Wanted() {
		os.Exit(linkerdproxy.Main())
	}
	os.Exit(hidden.Main(m))
}

func TestLatency(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(5 * time.Millisecond)
	RunSpecs(t, "latency")
}

package run

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/test/hidden"
)

// TestMain lets the tests' own program be those that scaler starts of itself.
func TestMain(m *testing.M) { os.Exit(hidden.Main(m)) }

func TestRollout(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(5 * time.Millisecond)
	RunSpecs(t, "rollout")
}

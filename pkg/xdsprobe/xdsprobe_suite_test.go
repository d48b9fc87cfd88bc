package xdsprobe

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
)

func TestXDSProbe(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second) // each waits for what must come
	SetDefaultEventuallyPollingInterval(time.Millisecond)
	RunSpecs(t, "xdsprobe")
}

var _ = BeforeEach(func() {
	before := goleak.IgnoreCurrent()
	DeferCleanup(func() {
		Eventually(func() error { return goleak.Find(before) }).Should(Succeed())
	})
})

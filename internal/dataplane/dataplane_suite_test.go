package dataplane

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"scaler.mesh/scaler/internal/process"
)

func TestDataplane(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second) // each waits for what must come
	RunSpecs(t, "dataplane")
}

// The benchmark's server is this very program.
func TestMain(m *testing.M) {
	if address := os.Getenv("DATAPLANE_SERVE"); address != "" {
		fmt.Fprintln(os.Stderr, lean(address))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// lean serves as cheaply as may be.
func lean(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	for {
		c, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			for r := bufio.NewReader(c); ; {
				for line := []byte(nil); !bytes.Equal(line, []byte("\r\n")); {
					if line, err = r.ReadSlice('\n'); err != nil {
						return
					}
				}
				if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")); err != nil {
					return
				}
			}
		}()
	}
}

// startEcho runs an echo server for the length of a spec and gives its address.
func startEcho(o EchoOptions) string {
	GinkgoHelper()
	var err error
	o.Listen, err = process.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Echo(ctx, o) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	})
	Eventually(func() error {
		c, err := net.Dial("tcp", o.Listen)
		if err == nil {
			c.Close()
		}
		return err
	}).Should(Succeed())
	return o.Listen
}

var _ = BeforeEach(func() {
	before := goleak.IgnoreCurrent()
	DeferCleanup(func() {
		Eventually(func() error { return goleak.Find(before) }).Should(Succeed())
	})
})

package process_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/process"
)

var _ = Describe("a network namespace", func() {
	var network *process.Network
	BeforeEach(func() {
		var err error
		network, err = process.OpenNetwork()
		if unix.Geteuid() != 0 {
			Expect(err).To(MatchError(ContainSubstring("want root, as by `unshare --user --map-root-user`")))
			Skip("needs root")
		}
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(network.Close)
	})

	It("has a loopback interface of its own", func(ctx SpecContext) {
		listener, err := network.Listen(ctx, "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		go func() {
			defer GinkgoRecover()
			conn, err := listener.Accept()
			Expect(err).NotTo(HaveOccurred())
			_, err = io.WriteString(conn, "inside")
			Expect(err).NotTo(HaveOccurred())
			Expect(conn.Close()).To(Succeed())
		}()
		conn, err := network.Dial(ctx, listener.Addr().String())
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(conn)).To(BeEquivalentTo("inside"))
		Expect(conn.Close()).To(Succeed())
		_, err = new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
		Expect(err).To(HaveOccurred(), "the same port of the machine is another one")
	})

	It("is that of a child", func(ctx SpecContext) {
		group, err := process.OpenGroup(filepath.Join(GinkgoT().TempDir(), "group"), process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(group.Remove)
		spec := process.Spec{Name: "cat", Path: "/bin/cat", Args: []string{"/proc/self/net/dev"}, Log: filepath.Join(GinkgoT().TempDir(), "log"), Network: network}
		child, err := group.Start(spec)
		Expect(err).NotTo(HaveOccurred())
		Eventually(child.Done()).Should(BeClosed())
		interfaces, err := os.ReadFile(spec.Log)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(string(interfaces), ":")).To(Equal(1), "%s", interfaces)
		Expect(string(interfaces)).To(ContainSubstring("lo:"))
	})
})

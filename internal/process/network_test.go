package process_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
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

	It("is connected to from many goroutines", func(ctx SpecContext) {
		listener, err := network.Listen(ctx, "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				conn.Close()
			}
		}()
		dialer := network.NewDialer()
		group, grouped := errgroup.WithContext(ctx)
		for range 20 {
			group.Go(func() error {
				for range 10 {
					conn, err := dialer.DialContext(grouped, "tcp", listener.Addr().String())
					if err != nil {
						return err
					}
					conn.Close()
				}
				return nil
			})
		}
		Expect(group.Wait()).To(Succeed())
		dialer.Close()
		var here, own unix.Stat_t
		Expect(unix.Stat("/proc/self/ns/net", &here)).To(Succeed())
		Expect(unix.Stat("/proc/thread-self/ns/net", &own)).To(Succeed())
		Expect(own.Ino).To(Equal(here.Ino), "no thread is left in it")
	})

	It("takes a child of another user, whose program and folder only root can reach", func(ctx SpecContext) {
		folder := filepath.Join(GinkgoT().TempDir(), "closed")
		Expect(os.Mkdir(folder, 0o700)).To(Succeed())
		program, err := os.ReadFile("/usr/bin/id")
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(folder, "id"), program, 0o755)).To(Succeed())
		own := filepath.Join(folder, "own")
		Expect(os.Mkdir(own, 0o700)).To(Succeed())
		const user = 1500
		if err := os.Chown(own, user, user); err != nil {
			Skip("needs the id of another user: " + err.Error())
		}
		group, err := process.OpenGroup(filepath.Join(GinkgoT().TempDir(), "group"), process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(group.Remove)
		spec := process.Spec{Name: "id", Path: filepath.Join(folder, "id"), Args: []string{"-u"}, Dir: own, User: user, Log: filepath.Join(GinkgoT().TempDir(), "log"), Network: network}
		child, err := group.Start(spec)
		Expect(err).NotTo(HaveOccurred())
		Eventually(child.Done()).Should(BeClosed())
		Expect(os.ReadFile(spec.Log)).To(BeEquivalentTo("1500\n"))

		Expect(os.WriteFile(filepath.Join(own, "file"), nil, 0o600)).To(Succeed())
		spec.Name, spec.Path, spec.Args, spec.Log = "realpath", "/usr/bin/realpath", []string{"--canonicalize-existing", "file"}, filepath.Join(GinkgoT().TempDir(), "log")
		child, err = group.Start(spec)
		Expect(err).NotTo(HaveOccurred())
		Eventually(child.Done()).Should(BeClosed())
		Expect(os.ReadFile(spec.Log)).To(BeEquivalentTo(filepath.Join(own, "file") + "\n"))
	})
})

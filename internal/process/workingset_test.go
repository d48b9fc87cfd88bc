package process_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/process"
)

// statusBytes returns a line of /proc/PID/status, in bytes.
func statusBytes(pid int, name string) int64 {
	GinkgoHelper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kilobytes, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			Expect(err).NotTo(HaveOccurred())
			return kilobytes << 10
		}
	}
	Fail("no line " + name)
	return 0
}

var _ = Describe("The working set of a child", func() {
	var group *process.Group
	var dir string

	BeforeEach(func() {
		if err := process.CanLimitMemory(); err != nil {
			Skip("memory cannot be counted here: " + err.Error())
		}
		var err error
		dir = GinkgoT().TempDir()
		group, err = process.OpenGroup(dir, process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(group.Stop(ctx)).To(Succeed())
			Expect(limitedGroups()).To(BeEmpty())
		})
	})

	counted := func(script string) *process.Process {
		spec := shell("limited", dir, script)
		spec.CountMemory = true
		p, err := group.Start(spec)
		Expect(err).NotTo(HaveOccurred())
		return p
	}
	workingSet := func(p *process.Process) func() int64 {
		return func() int64 {
			held, err := p.Handle().WorkingSet()
			Expect(err).NotTo(HaveOccurred())
			return held
		}
	}

	It("is its anonymous memory and little else, and nothing limits it", func() {
		const size = 48 << 20
		// A pipe that nobody writes to: the shell waits without a child of its own.
		Expect(unix.Mkfifo(filepath.Join(dir, "never"), 0o600)).To(Succeed())
		p := counted(fmt.Sprintf(`x=$(head -c %d /dev/zero | tr '\0' x); echo held; read y <%s/never`, size, dir))
		// Before that its helpers are in the group, too.
		Eventually(func() ([]byte, error) { return os.ReadFile(filepath.Join(dir, "logs", "limited.log")) }, "20s").Should(ContainSubstring("held"))
		anonymous := func() int64 { return statusBytes(p.PID(), "RssAnon") }
		Expect(anonymous()).To(BeNumerically(">", size))
		// What the shell's helpers held is charged until their pages are freed.
		Eventually(func() int64 { return workingSet(p)() - anonymous() }, "20s").Should(And(BeNumerically(">", -(1<<20)), BeNumerically("<", 16<<20)))
	})

	It("includes the buffers of its sockets", func() {
		bash, err := os.Stat("/bin/bash")
		if err != nil || bash.IsDir() {
			Skip("no bash, which can open a connection")
		}
		server, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		defer server.Close()
		Expect(unix.Mkfifo(filepath.Join(dir, "never"), 0o600)).To(Succeed())
		// What it says last comes when it has done all that takes memory, or gives some back.
		spec := shell("limited", dir, fmt.Sprintf(`exec /bin/bash -c 'until [ -e %[1]s/counted ]; do :; done; exec 3<>/dev/tcp/127.0.0.1/%[2]d 4<>%[1]s/never; echo connected >&3; read line <&4'`,
			dir, server.Addr().(*net.TCPAddr).Port))
		spec.CountMemory = true
		p, err := group.Start(spec)
		Expect(err).NotTo(HaveOccurred())
		// Only sockets that are made in the group are counted.
		Expect(os.WriteFile(filepath.Join(dir, "counted"), nil, 0o600)).To(Succeed())
		conn, err := server.Accept()
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		Expect(bufio.NewReader(conn).ReadString('\n')).To(Equal("connected\n"))
		before := workingSet(p)()
		// What the child does not read stays in the buffer of its socket.
		written, err := conn.Write(bytes.Repeat([]byte{1}, 48<<10))
		Expect(err).NotTo(HaveOccurred())
		Eventually(workingSet(p)).Should(BeNumerically(">=", before+int64(written)/2))
	})

	It("is not known of one that nobody asked to count", func() {
		p, err := group.Start(shell("plain", dir, "exec sleep 1000"))
		Expect(err).NotTo(HaveOccurred())
		_, err = p.Handle().WorkingSet()
		Expect(err).To(MatchError(process.ErrNotCounted))
	})
})

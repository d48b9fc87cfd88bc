package sidecar

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/proxy"
)

func TestSidecar(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(5 * time.Millisecond)
	RunSpecs(t, "sidecar")
}

// TestMain lets the tests' own program become Envoy, as scaler does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ExecCommand {
		fmt.Fprintln(os.Stderr, Exec(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// program returns a shell script.
func program(text string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "program")
	Expect(os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755)).To(Succeed())
	return path
}

var _ = Describe("a sidecar", func() {
	var opts Options
	BeforeEach(func() {
		group, err := process.OpenGroup(filepath.Join(GinkgoT().TempDir(), "group"), process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(group.Stop)
		ports, err := process.FreePorts(1)
		Expect(err).NotTo(HaveOccurred())
		dir := GinkgoT().TempDir()
		opts = Options{
			Name: "sidecar-a", Dir: filepath.Join(dir, "it's a"), Group: group, Log: filepath.Join(dir, "log"),
			Env: []string{"PATH=/usr/bin:/bin"}, AdminPort: ports[0], Files: map[string][]byte{"etc/file": []byte("text\n")},
		}
	})

	It("is given up with its words when it ends again and again", func(ctx SpecContext) {
		opts.Envoy = program("cat etc/file\necho no such luck\nexit 3\n")
		crashed := 0
		opts.Crashed = func(c Crash) {
			Expect(c.Ready).To(BeFalse())
			crashed++
		}
		s, err := New(opts)
		Expect(err).NotTo(HaveOccurred())
		s.backoff = time.Millisecond
		err = s.Run(ctx)
		Expect(err).To(MatchError(And(ContainSubstring("ended 5 times without having been ready"), ContainSubstring("text\nno such luck"))))
		Expect(crashed).To(Equal(maxFailures))
		Expect(s.Crashes()).To(HaveLen(maxFailures))
		Expect(s.AwaitReady(ctx)).To(MatchError(ContainSubstring("no such luck")))
	})

	It("has its token before it starts, and no Envoy outlives its agent", func(ctx SpecContext) {
		opts.Envoy = program("exec sleep 1000\n")
		opts.Agent = program("cat token || exit 1\n./envoy &\nwait\n")
		opts.TokenFile = "token"
		opts.Token = func(context.Context) (proxy.Token, error) {
			return proxy.Token{Value: "a-token", Expires: time.Now().Add(time.Hour)}, nil
		}
		lives := make(chan Life, 10)
		opts.Started = func(l Life) { lives <- l }
		s, err := New(opts)
		Expect(err).NotTo(HaveOccurred())
		life, end := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(life) }()
		var first Life
		Eventually(lives).Should(Receive(&first))
		Expect(first.Envoy).NotTo(Equal(first.Process))
		Expect(os.ReadFile(opts.Log)).To(BeEquivalentTo("a-token"))

		By("killing the agent alone")
		agent, err := os.FindProcess(first.Process.PID())
		Expect(err).NotTo(HaveOccurred())
		Expect(agent.Kill()).To(Succeed())
		Eventually(func() error { _, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", first.Envoy.PID())); return err }).Should(HaveOccurred())
		Eventually(lives).Should(Receive(HaveField("Number", 2)))
		end()
		Eventually(ended).Should(Receive(BeNil()))
	})

	It("says what keeps it from starting", func(ctx SpecContext) {
		opts.Envoy = filepath.Join(opts.Dir, "nothing")
		s, err := New(opts)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Run(ctx)).To(MatchError(And(ContainSubstring("starting sidecar sidecar-a"), ContainSubstring("no such file"))))

		opts.TokenFile, opts.Token = "token", func(context.Context) (proxy.Token, error) { return proxy.Token{}, context.DeadlineExceeded }
		s, err = New(opts)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Run(ctx)).To(MatchError(context.DeadlineExceeded))
	})
})

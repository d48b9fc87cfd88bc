//go:build e2e

package e2e

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/test/exposure"
)

// envoy returns an Envoy that scaler would find, installed if need be.
func envoy(ctx SpecContext) string {
	GinkgoHelper()
	paths, err := component.Paths(ctx, component.Options{
		CacheDir: os.Getenv("SCALER_CACHE_DIR"), Envoy: os.Getenv("SCALER_ENVOY"), Progress: func(msg string) { GinkgoWriter.Println(msg) },
	}, component.Envoy, component.PilotAgent)
	Expect(err).NotTo(HaveOccurred())
	return paths[component.Envoy]
}

var _ = Describe("a rollout with real sidecars", func() {
	// Serial: it asks ports that the Envoys of another run have too, and one of a
	// reference control plane answers there.
	It("converges by what their Envoys hold, as was predicted", Serial, func(ctx SpecContext) {
		where := newPlace()
		secrets := exposure.Secrets{"hunter2hunter2": "the value of --control-plane-env"}
		cmd := where.command("rollout", "--pods", "12", "--out", where.out, "-o", "json", "--baseline", "1s", "--settle", "3s", "--steady", "5s", "--probes", "1",
			"--converge-timeout", "90s", "--services", "3", "--mode", "strict", "--real-sidecars", "2", "--envoy", envoy(ctx), "--control-plane-env", "API_TOKEN")
		cmd.Env = append(cmd.Env, "API_TOKEN=hunter2hunter2")
		session := session(cmd)

		By("looking at what it shows to others while it runs")
		Eventually(where.phase, "2m").Should(BeElementOf(record.PhaseSettle, record.PhaseSteady)) // all sidecars are up
		Expect(syscall.Kill(session.Command.Process.Pid, syscall.SIGSTOP)).To(Succeed())          // it goes on when it was looked at
		sockets, exposed, err := exposure.OfRun(session.Command.Process.Pid, where.state, "../../docs/security.md", secrets)
		Expect(err).NotTo(HaveOccurred())
		GinkgoWriter.Println(sockets)
		Expect(exposed).To(BeEmpty())
		for _, program := range []string{"etcd", "kube-apiserver", "istiod", "pilot-agent", "envoy", "prometheus", "scaler"} {
			Expect(sockets).To(ContainElement(HaveField("Program", program)), "no socket of it was seen")
		}
		Expect(len(secrets)).To(BeNumerically(">", 10), "its keys and tokens were not found")
		for _, port := range []string{"15001", "15006"} { // open to the network, as in a pod
			conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", port), 10*time.Second)
			Expect(err).NotTo(HaveOccurred())
			Expect(conn.SetDeadline(time.Now().Add(10 * time.Second))).To(Succeed())
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") // it may be closed already
			answer, err := io.ReadAll(conn)
			Expect(err).To(Or(Not(HaveOccurred()), MatchError(syscall.ECONNRESET)), "port "+port)
			Expect(answer).To(BeEmpty(), "something answers at "+port)
			Expect(conn.Close()).To(Succeed())
		}
		Expect(syscall.Kill(session.Command.Process.Pid, syscall.SIGCONT)).To(Succeed())

		Expect(wait(session)).To(Equal(exitDone))
		html := where.start("report", where.out, "-o", "html")
		Expect(wait(html)).To(Equal(exitDone))
		for _, s := range []*gexec.Session{session, html} {
			Expect(secrets.In(append(s.Out.Contents(), s.Err.Contents()...))).To(BeEmpty())
		}
		Expect(secrets.InFolder(where.out)).To(BeEmpty())
		run := printed(session)
		Expect(known(run.Pods.Converged)).To(Equal(12))
		Expect(run.Environment.ControlPlane.Settings).To(HaveKeyWithValue("PILOT_ENABLE_METADATA_EXCHANGE", "false"))
		for _, w := range run.Warnings {
			Expect(w.About).NotTo(HavePrefix("xds.configuration"), w.Text)
			Expect(w.About).NotTo(HavePrefix("sidecars.real"), w.Text)
		}
		real := known(known(run.Sidecars).Real)
		Expect(real.Count).To(Equal(2))
		Expect(real.Each).To(HaveLen(2))
		for _, each := range real.Each {
			Expect(each.Crashes).To(BeZero())
			Expect(known(known(known(each.Proxy.Steady).MemoryBytes).Mean)).To(BeNumerically(">", 20e6))
			Expect(known(known(known(known(each.Agent).Steady).MemoryBytes).Mean)).To(BeNumerically(">", 10e6))
		}
		for name, l := range map[string]int64{
			"token": known(known(real.Starts).Token).Count, "certificate": known(known(real.Starts).Certificate).Count,
			"firstConfiguration": known(known(real.Starts).FirstConfiguration).Count, "completeConfiguration": known(known(real.Starts).CompleteConfiguration).Count,
		} {
			Expect(l).To(BeEquivalentTo(2), name)
		}
		Expect(known(run.Latencies.CompleteConfiguration).Count).To(BeEquivalentTo(10))
		Expect(known(run.Latencies.CompleteConfiguration).Lost).To(BeZero())
	}, SpecTimeout(5*time.Minute))

	It("reports the output of an Envoy that does not start, and leaves nothing", acceptance, func(ctx SpecContext) {
		where := newPlace()
		broken := filepath.Join(GinkgoT().TempDir(), "envoy")
		Expect(os.WriteFile(broken, []byte("#!/bin/sh\ncase \"$*\" in *--version*) echo version: 1.40.0;; *) echo no such luck; exit 7;; esac\n"), 0o755)).To(Succeed())
		session := where.rollout(6, "--services", "2", "--real-sidecars", "1", "--control-plane", "reference", "--envoy", broken)
		Expect(wait(session)).To(Equal(1))
		Expect(string(session.Err.Contents())).To(ContainSubstring("no such luck"))
		Expect(where.groups()).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))

	It("takes its Envoys along when it is killed", func(ctx SpecContext) {
		where := newPlace()
		session := where.start("rollout", "--pods", "6", "--services", "2", "--real-sidecars", "2", "--control-plane", "reference", "--probes", "0",
			"--calibrate=false", "--baseline", "1s", "--settle", "0s", "--steady", "10m", "--out", where.out, "--envoy", envoy(ctx))
		where.reach(session, record.PhaseSteady)
		Expect(len(where.children())).To(BeNumerically(">=", 4), "two Envoys, and their workloads")
		session.Signal(syscall.SIGKILL)
		Eventually(session).Should(gexec.Exit())
		Eventually(where.children).Should(BeEmpty())
	}, SpecTimeout(5*time.Minute))
})

package xdsload

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"scaler.mesh/scaler/internal/controlplane/reference/server"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

// serveMesh serves two services to whoever comes, until the spec ends.
func serveMesh(secure, plain net.Listener) *server.Authority {
	GinkgoHelper()
	authority, err := server.NewAuthority()
	Expect(err).NotTo(HaveOccurred())
	monitoring := listen("")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- server.Run(ctx, server.Options{
			Static: &server.Static{
				Mesh: server.Mesh{Services: []server.Service{
					{Namespace: "one", Name: "a", Ports: []server.Port{{Name: "http", Number: 80, Target: 8080}}},
					{Namespace: "one", Name: "b", Ports: []server.Port{{Name: "http", Number: 80, Target: 8080}}},
				}},
				Endpoints: map[string][]server.Endpoint{"one/a:http": {{Addr: netip.MustParseAddrPort("10.0.0.1:8080")}}},
			},
			Authority: authority, Secure: secure, Plain: plain, Monitoring: monitoring,
		})
	}()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(Succeed()))
	})
	Eventually(func() (int, error) {
		answer, err := http.Get("http://" + monitoring.Addr().String() + "/ready")
		if err != nil {
			return 0, err
		}
		http.DefaultClient.CloseIdleConnections()
		return answer.StatusCode, answer.Body.Close()
	}).Should(Equal(http.StatusOK))
	return authority
}

func listen(address string) net.Listener {
	GinkgoHelper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	Expect(err).NotTo(HaveOccurred())
	return l
}

// result is the result of a run.
type result struct {
	run record.XDSRun
	err error
}

// living is a run that goes on.
type liveRun struct {
	stop context.CancelFunc
	done chan result

	mu    sync.Mutex
	lines []string
}

func live(spec Spec) *liveRun {
	ctx, cancel := context.WithCancel(context.Background())
	l := &liveRun{stop: cancel, done: make(chan result, 1)}
	go func() {
		run, err := Run(ctx, spec, Progress{Log: func(msg string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.lines = append(l.lines, msg)
		}})
		l.done <- result{run, err}
	}()
	DeferCleanup(cancel)
	return l
}

// says returns the first line that holds a text, "" if there is none yet.
func (l *liveRun) logged(text string) func() string {
	return func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		i := slices.IndexFunc(l.lines, func(s string) bool { return strings.Contains(s, text) })
		if i < 0 {
			return ""
		}
		return l.lines[i]
	}
}

func (l *liveRun) result() (r result) {
	GinkgoHelper()
	Eventually(l.done).Should(Receive(&r))
	return r
}

var _ = Describe("sidecars alone", func() {
	var spec Spec
	BeforeEach(func() {
		before := goleak.IgnoreCurrent()
		DeferCleanup(func() { Eventually(func() error { return goleak.Find(before) }).Should(Succeed()) })
		spec = DefaultSpec()
		spec.Clients, spec.Plaintext = 20, true
	})

	for _, variant := range []string{"delta", "sotw"} {
		It("become complete and live until they are stopped, "+variant, func() {
			plain := listen("")
			serveMesh(listen(""), plain)
			spec.Address, spec.XDS, spec.MetricsAddress = plain.Addr().String(), variant, "127.0.0.1:0"
			run := live(spec)
			Eventually(run.logged("all 20 sidecars are complete")).ShouldNot(BeEmpty())

			answer, err := http.Get(strings.TrimPrefix(run.logged("metrics: ")(), "metrics: "))
			Expect(err).NotTo(HaveOccurred())
			text, err := io.ReadAll(answer.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Body.Close()).To(Succeed())
			http.DefaultClient.CloseIdleConnections()
			Expect(string(text)).To(ContainSubstring(`scaler_xds_responses_total{type="CDS"} 20`))

			run.stop()
			r := run.result()
			Expect(r.err).NotTo(HaveOccurred())
			Expect(r.run.Status).To(Equal(record.StatusCompleted))
			Expect(r.run.Sidecars).To(Equal(record.XDSSidecars{Requested: 20, Connected: 20, Answered: 20, Complete: 20}))
			Expect(r.run.XDS.Responses).To(Equal(map[string]int64{"CDS": 20, "EDS": 20, "LDS": 20, "RDS": 20, "ECDS": 0}))
			Expect(*r.run.XDS.Acks).To(BeEquivalentTo(80))
			Expect(*r.run.XDS.Nacks).To(BeZero())
			Expect(*r.run.XDS.ConfigurationBytes.Mean).To(BeNumerically(">", 0))
			for _, l := range []*record.Latency{r.run.Latencies.ConnectTotal, r.run.Latencies.FirstConfiguration, r.run.Latencies.CompleteConfiguration} {
				Expect(l.Count).To(BeEquivalentTo(20))
				Expect(l.Lost).To(BeZero())
			}
			Expect(r.run.Windows).To(HaveLen(2))
			Expect(r.run.Windows[0].Responses + r.run.Windows[1].Responses).To(BeEquivalentTo(80))
		})
	}

	It("are distinguished by their templates", func() {
		nodes, err := spec.nodes()
		Expect(err).NotTo(HaveOccurred())
		c, err := nodes.config(300)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.NodeID).To(Equal("sidecar~100.64.1.45~client-300.default~default.svc.cluster.local"))
		Expect(c.Metadata).To(HaveKeyWithValue("INSTANCE_IPS", "100.64.1.45"))
	})

	It("wait for a server that is not there yet", func() {
		var err error
		spec.Address, err = process.FreeAddress()
		Expect(err).NotTo(HaveOccurred())
		spec.Clients = 3
		run := live(spec)
		Eventually(run.logged("unreachable: ")).Should(ContainSubstring("sidecars try again, as a proxy would"))
		serveMesh(listen(""), listen(spec.Address))
		Eventually(run.logged("all 3 sidecars are complete")).ShouldNot(BeEmpty())
		run.stop()
		r := run.result()
		Expect(r.err).NotTo(HaveOccurred())
		Expect(r.run.Warnings).To(ContainElement(HaveField("About", "xds.attempts")))
	})

	It("are lost when there never was a server", func() {
		var err error
		spec.Address, err = process.FreeAddress()
		Expect(err).NotTo(HaveOccurred())
		spec.Clients, spec.Duration = 3, 300*time.Millisecond
		r := live(spec).result()
		Expect(r.err).To(MatchError(ErrIncomplete))
		Expect(r.run.Status).To(Equal(record.StatusUnconverged))
		Expect(r.run.Latencies.CompleteConfiguration.Lost).To(BeEquivalentTo(3))
	})

	It("speak TLS with a token", func() {
		secure := listen("")
		authority := serveMesh(secure, nil)
		dir := GinkgoT().TempDir()
		spec.Plaintext, spec.Address, spec.ServerName = false, secure.Addr().String(), server.ServerName
		spec.TLSCA, spec.TokenFile = filepath.Join(dir, "root.pem"), filepath.Join(dir, "token")
		Expect(os.WriteFile(spec.TLSCA, authority.RootPEM(), 0o600)).To(Succeed())
		Expect(os.WriteFile(spec.TokenFile, []byte("secret\n"), 0o600)).To(Succeed())
		run := live(spec)
		Eventually(run.logged("are complete")).ShouldNot(BeEmpty())
		run.stop()
		Expect(run.result().err).NotTo(HaveOccurred())
	})

	It("are interrupted before their time is over", func() {
		plain := listen("")
		serveMesh(listen(""), plain)
		spec.Address, spec.Duration = plain.Addr().String(), time.Hour
		run := live(spec)
		Eventually(run.logged("are complete")).ShouldNot(BeEmpty())
		run.stop()
		r := run.result()
		Expect(r.err).To(MatchError(context.Canceled))
		Expect(r.run.Status).To(Equal(record.StatusInterrupted))
		Expect(r.run.Sidecars.Complete).To(Equal(20))
	})
})

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/process"
)

// flaky is a target without a content type that fails on request.
type flaky struct {
	failing atomic.Bool
	failed  atomic.Int64 // how often it did
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = nil
	if f.failing.Load() {
		f.failed.Add(1)
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprint(w, "flaky_value 42\n", goMetrics(1<<62))
}

// goMetrics returns metrics of Go from which a live heap of 100 MB follows, unless the
// memory limit changes it.
func goMetrics(limit int64) string {
	return fmt.Sprintf("go_memstats_next_gc_bytes 2e+08\ngo_gc_gogc_percent 100\ngo_memstats_sys_bytes 3e+08\n"+
		"go_memstats_heap_sys_bytes 2.8e+08\ngo_gc_gomemlimit_bytes %d\n", limit)
}

// lines counts what a logger writes.
type lines struct{ atomic.Int64 }

func (l *lines) Write(line []byte) (int, error) {
	l.Add(1)
	return len(line), nil
}

// visits has the times at which a target was scraped.
type visits struct {
	mu  sync.Mutex
	all []time.Time
}

func (v *visits) add() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, time.Now())
}

// skipped returns the number of scrapes in (from, to] that were not made at an interval of a second, as on a
// busy machine.
func (v *visits) skipped(from, to time.Time) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := from
	for _, at := range append(slices.Clone(v.all), to) {
		if at.After(from) && !at.After(to) {
			n += max(0, int(math.Ceil(at.Sub(last).Seconds()-1.05)))
			last = at
		}
	}
	return n
}

// guarded serves metrics to those who show the certificate that is in the
// files returned, and to nobody else. It keeps when it did, and counts those it refused.
func guarded(dir string, visited *visits, refused *lines) (url, ca, cert, key string) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		visited.add()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, "guarded_value 1\netcd_request_duration_seconds_bucket{le=\"1\"} 1\netcd_request_duration_seconds_count 1\n", goMetrics(225e6))
	}))
	server.Config.ErrorLog = log.New(refused, "", 0)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
		if !bytes.Equal(raw[0], server.Certificate().Raw) {
			return errors.New("a stranger")
		}
		return nil
	}}
	server.StartTLS()
	DeferCleanup(server.Close)
	own := server.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	Expect(err).NotTo(HaveOccurred())
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		Expect(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)).To(Succeed())
		return path
	}
	cert = write("cert.pem", "CERTIFICATE", own.Certificate[0])
	return server.URL + "/metrics", cert, cert, write("key.pem", "PRIVATE KEY", private)
}

var _ = Describe("a recorder", func() {
	var (
		dir      string
		promtool string
		group    *process.Group
		sampler  *measure.Sampler
		metrics  *measure.Metrics
		flaking  *flaky
		refused  *lines
		visited  *visits
		options  measure.Options
		finished chan error
	)

	BeforeEach(func(ctx SpecContext) {
		dir = GinkgoT().TempDir()
		programs, err := component.Paths(ctx, component.Options{BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR")}, component.Promtool)
		Expect(err).NotTo(HaveOccurred())
		promtool = programs[component.Promtool]
		group, err = process.OpenGroup(filepath.Join(dir, "group"), process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(group.Stop(ctx)).To(Succeed()) })

		sampler = measure.NewSampler(0)
		Expect(sampler.Watch("scaler", measure.Self())).To(Succeed())
		metrics = measure.NewMetrics(measure.Build{Version: "test"}, sampler)
		own, err := metrics.Listen()
		Expect(err).NotTo(HaveOccurred())
		running, cancel := context.WithCancel(context.Background())
		finished = make(chan error, 2)
		go func() { finished <- own.Run(running) }()
		go func() { finished <- sampler.Run(running) }()
		DeferCleanup(func() {
			cancel()
			Expect(<-finished).To(Succeed())
			Expect(<-finished).To(Succeed())
		})

		flaking = &flaky{}
		plain := httptest.NewServer(flaking)
		DeferCleanup(plain.Close)
		refused, visited = &lines{}, &visits{}
		url, ca, cert, key := guarded(dir, visited, refused)
		options = measure.Options{
			Prometheus: prometheus,
			Dir:        filepath.Join(dir, "prometheus"),
			Group:      group,
			Log:        filepath.Join(dir, "prometheus.log"),
			Targets: []measure.Target{
				{Job: "scaler", URL: own.URL(), Labels: map[string]string{"run": "r1"}},
				{Job: "flaky", URL: plain.URL + "/metrics"},
				{Job: "guarded", URL: url, CAFile: ca, CertFile: cert, KeyFile: key},
			},
		}
	})

	value := func(ctx context.Context, r *measure.Recorder, expr string, at time.Time) float64 {
		GinkgoHelper()
		v, ok, err := r.Value(ctx, expr, at)
		Expect(err).NotTo(HaveOccurred())
		Expect(ok).To(BeTrue(), "no value of %s", expr)
		return v
	}

	It("scrapes, answers and leaves a TSDB that others read", func(ctx SpecContext) {
		r, err := measure.Start(ctx, options)
		Expect(err).NotTo(HaveOccurred())
		Expect(sampler.Watch("prometheus", measure.OfProcess(process.Find(started(group))))).To(Succeed())

		By("having scraped every target once")
		now := time.Now()
		Expect(value(ctx, r, "sum(up)", now)).To(Equal(3.0))
		Expect(value(ctx, r, "flaky_value", now)).To(Equal(42.0))
		Expect(value(ctx, r, "guarded_value", now)).To(Equal(1.0))
		Expect(value(ctx, r, `scaler_build_info{run="r1", version="test"}`, now)).To(Equal(1.0))

		By("keeping what is read and dropping what is not")
		Expect(value(ctx, r, "etcd_request_duration_seconds_count", now)).To(Equal(1.0))
		_, ok, err := r.Value(ctx, "etcd_request_duration_seconds_bucket", now)
		Expect(err).NotTo(HaveOccurred())
		Expect(ok).To(BeFalse())

		By("following a phase in which a target fails")
		from, err := sampler.Edge()
		Expect(err).NotTo(HaveOccurred())
		metrics.Observe(measure.Connect, 20*time.Millisecond)
		Expect(r.Scraped(ctx, from)).To(Succeed())
		flaking.failing.Store(true)
		Eventually(func() (int, error) {
			missed, _, err := r.Gaps(ctx, "flaky", from, time.Now())
			return missed, err
		}).WithContext(ctx).Should(BeNumerically(">=", 2))
		flaking.failing.Store(false)
		to, err := sampler.Edge()
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Scraped(ctx, to)).To(Succeed())
		Expect(value(ctx, r, "min(timestamp(up))", time.Now())).To(BeNumerically(">=", milliseconds(to)))
		missed, total, err := r.Gaps(ctx, "flaky", from, to)
		Expect(err).NotTo(HaveOccurred())
		skipped := visited.skipped(from, to)
		Expect(missed).To(And(BeNumerically(">=", flaking.failed.Load()-1), BeNumerically("<=", int(flaking.failed.Load())+1+skipped)))
		Expect(total).To(BeNumerically("~", to.Sub(from).Seconds(), 1))
		missed, _, err = r.Gaps(ctx, "guarded", from, to)
		Expect(err).NotTo(HaveOccurred())
		Expect(missed).To(BeNumerically("<=", skipped))

		By("reading histograms both ways")
		Expect(value(ctx, r, "histogram_count(scaler_connect_seconds)", to)).To(Equal(1.0))
		Expect(value(ctx, r, `scaler_connect_seconds_bucket{le="0.032"}`, to)).To(Equal(1.0))
		Expect(value(ctx, r, "histogram_quantile(0.5, scaler_connect_seconds)", to)).To(BeNumerically("~", 0.02, 0.002))

		By("computing figures")
		own, err := r.Figures(ctx, sampler, "scaler", from, to)
		Expect(err).NotTo(HaveOccurred())
		Expect(own.CPUSeconds).To(BeNumerically(">", 0))
		Expect(own.Heap).NotTo(BeNil())
		Expect(own.Heap.End).To(And(BeNumerically(">", 100<<10), BeNumerically("<", own.MemoryEnd)))
		other, err := r.Figures(ctx, sampler, "prometheus", from, to)
		Expect(err).NotTo(HaveOccurred())
		Expect(other.MemoryMean).To(BeNumerically(">", 10<<20))
		Expect(other.Heap).To(BeNil(), "it is no target here")
		Expect(r.Heap(ctx, "guarded", from, to)).To(BeNil(), "a memory limit made the collector's goal")
		Expect(r.Heap(ctx, "flaky", from, to)).To(Equal(&measure.Heap{Mean: 100e6, End: 100e6}))
		Expect(r.Heap(ctx, "no such job", from, to)).To(BeNil())
		Expect(value(ctx, r, "count(scaler_component_cpu_seconds_total)", to)).To(BeEquivalentTo(2))
		_, _, err = r.Value(ctx, "up", to)
		Expect(err).To(MatchError(ContainSubstring("3 series, want one")))
		_, _, err = r.Value(ctx, "up{", to)
		Expect(err).To(MatchError(ContainSubstring(`querying "up{"`)))

		By("sealing the TSDB")
		samples := value(ctx, r, fmt.Sprintf("sum(count_over_time(up[10m] @ %.3f))", milliseconds(to)), to)
		Expect(r.Stop(ctx)).To(Succeed())
		Expect(r.Done()).To(BeClosed())
		Expect(r.Err()).NotTo(HaveOccurred())
		entries, err := os.ReadDir(options.Dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(entries).To(HaveLen(1), "one block and nothing else")
		Expect(sizeOf(options.Dir)).To(BeNumerically("<", 1<<20))
		output, err := os.ReadFile(options.Log)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Split(strings.TrimSpace(string(output)), "\n")).To(ConsistOf(ContainSubstring("exiting gracefully")))

		By("dumping it with promtool")
		dump, err := exec.CommandContext(ctx, promtool, "tsdb", "dump",
			"--match={__name__='up'}", "--max-time="+fmt.Sprint(to.UnixMilli()), options.Dir).Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(bytes.Count(dump, []byte("\n"))).To(Equal(int(samples)))

		By("opening it in a plain Prometheus")
		Expect(os.CopyFS(filepath.Join(dir, "copy"), os.DirFS(options.Dir))).To(Succeed())
		Expect(askPlain(ctx, group, filepath.Join(dir, "copy"), `sum(count_over_time(up[10m]))`, to)).To(ContainSubstring(fmt.Sprintf(`"%v"`, samples)))
	}, SpecTimeout(2*time.Minute))

	It("leaves what it had when Prometheus is killed", func(ctx SpecContext) {
		r, err := measure.Start(ctx, options)
		Expect(err).NotTo(HaveOccurred())
		victim, err := os.FindProcess(started(group))
		Expect(err).NotTo(HaveOccurred())
		at := time.Now()
		Expect(victim.Kill()).To(Succeed())
		Eventually(ctx, r.Done()).Should(BeClosed())
		Expect(r.Err()).To(HaveOccurred())
		Expect(r.Scraped(ctx, at)).To(MatchError(ContainSubstring("prometheus ended")))
		Expect(r.Stop(ctx)).To(MatchError(ContainSubstring("still in the log")))
		Expect(askPlain(ctx, group, options.Dir, "sum(up)", at)).To(ContainSubstring(`"3"`))

		By("serving a copy of that")
		served, err := measure.Serve(ctx, measure.ServeOptions{
			Prometheus: options.Prometheus, TSDBs: []string{options.Dir}, Dir: filepath.Join(dir, "served"), Group: group,
		})
		Expect(err).NotTo(HaveOccurred())
		response, err := http.Get(fmt.Sprintf("%s/api/v1/query?query=sum(up)&time=%d", served.URL(), at.Unix()+1))
		Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		Expect(io.ReadAll(response.Body)).To(ContainSubstring(`"3"`))
	}, SpecTimeout(2*time.Minute))

	It("says which target does not answer, and leaves nothing running", func(ctx SpecContext) {
		options.Targets[2].KeyFile, options.Targets[2].CertFile = "", ""
		waiting := make(chan struct{})
		options.Progress = func(string) { close(waiting) }
		limited, cancel := context.WithCancel(ctx)
		defer cancel()
		started := make(chan error, 1)
		go func() {
			_, err := measure.Start(limited, options)
			started <- err
		}()
		Eventually(ctx, waiting).Should(BeClosed())
		// Prometheus knows what became of a scrape before it begins the next one.
		Eventually(ctx, refused.Load).Should(BeNumerically(">=", refused.Load()+3))
		cancel()
		var err error
		Eventually(ctx, started).Should(Receive(&err))
		// The error is that of the last scrape, which a busy machine may not have answered in time.
		Expect(err).To(MatchError(And(ContainSubstring("guarded: 0 of 1 targets"), ContainSubstring(options.Targets[2].URL), Or(ContainSubstring("tls:"), ContainSubstring("deadline exceeded")))))
		// The group takes the name again only when its process has ended.
		again, err := group.Start(process.Spec{Name: "prometheus", Path: "/bin/true"})
		Expect(err).NotTo(HaveOccurred())
		Eventually(again.Done()).Should(BeClosed())
	}, SpecTimeout(time.Minute))

	It("refuses a folder with data in it", func(ctx SpecContext) {
		Expect(os.MkdirAll(filepath.Join(options.Dir, "wal"), 0o755)).To(Succeed())
		_, err := measure.Start(ctx, options)
		Expect(err).To(MatchError(ContainSubstring("is not empty")))
	}, SpecTimeout(time.Minute))
})

// started returns the process id of the Prometheus that a group has started.
func started(group *process.Group) int {
	GinkgoHelper()
	s, err := process.Inspect(group.Dir())
	Expect(err).NotTo(HaveOccurred())
	for _, c := range s.Children {
		if c.Name == "prometheus" {
			return c.PID
		}
	}
	Fail("no Prometheus was started")
	return 0
}

// askPlain starts a plain Prometheus on a TSDB and returns its answer.
func askPlain(ctx context.Context, group *process.Group, tsdb, expr string, at time.Time) string {
	GinkgoHelper()
	ports, err := process.FreePorts(1)
	Expect(err).NotTo(HaveOccurred())
	config := filepath.Join(GinkgoT().TempDir(), "empty.yml")
	Expect(os.WriteFile(config, nil, 0o600)).To(Succeed())
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	p, err := group.Start(process.Spec{
		Name: "reader", Path: prometheus,
		Args: []string{"--config.file=" + config, "--storage.tsdb.path=" + tsdb, "--web.listen-address=" + address},
	})
	Expect(err).NotTo(HaveOccurred())
	var answer string
	Expect(p.WaitReady(ctx, func(ctx context.Context) error {
		url := fmt.Sprintf("http://%s/api/v1/query?time=%.3f&query=%s", address, milliseconds(at), strings.ReplaceAll(expr, " ", "%20"))
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			return err
		}
		var body bytes.Buffer
		_, err = body.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		answer = body.String()
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, answer)
		}
		return err
	})).To(Succeed())
	Expect(p.Stop(ctx)).To(Succeed())
	return answer
}

func milliseconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// sizeOf returns the size of all files in a folder, in bytes.
func sizeOf(dir string) (total int64) {
	Expect(filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			total += info.Size()
		}
		return err
	})).To(Succeed())
	return total
}

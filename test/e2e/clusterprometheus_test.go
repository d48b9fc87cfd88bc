//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/measure/clusterprometheus"
	"scaler.mesh/scaler/internal/process"
)

// clusterPrometheusConfig has a Prometheus scrape itself, as a pod, and a page of cAdvisor.
const clusterPrometheusConfig = `
global: {scrape_interval: 1s}
scrape_configs:
- job_name: kubernetes-pods
  static_configs:
  - targets: [%[1]q]
    labels: {namespace: istio-system, pod: istiod-7c9-abcde, app: istiod}
- job_name: kubelet
  metrics_path: /metrics/cadvisor
  honor_timestamps: true
  static_configs:
  - targets: [%[2]q]
`

// cadvisorOf is what a kubelet says of a process of this machine, as a container, at moments of its own.
func cadvisorOf(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	ticks := 0.0
	for _, field := range fields[11:13] { // utime, stime
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return "", err
		}
		ticks += n / 100
	}
	labels := `container="discovery",id="/kubepods/one",image="i",name="c",namespace="istio-system",pod="istiod-7c9-abcde"`
	at := time.Now().UnixMilli()
	return fmt.Sprintf("container_cpu_usage_seconds_total{%s,cpu=\"total\"} %g %d\ncontainer_memory_rss{%s} 1e+08 %d\ncontainer_memory_working_set_bytes{%s} 1.5e+08 %d\n",
		labels, ticks, at, labels, at, labels, at), nil
}

var _ = Describe("a Prometheus that is there", func() {
	It("has what a pod used, within limits that hold, until it ends", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		group, err := process.OpenGroup(filepath.Join(dir, "group"), process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(group.Stop(ctx)).To(Succeed()) })
		address, err := process.FreeAddress()
		Expect(err).NotTo(HaveOccurred())
		pid := make(chan int, 1)
		kubelet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			one := <-pid
			pid <- one
			text, err := cadvisorOf(one)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, text)
		}))
		DeferCleanup(kubelet.Close)
		file := filepath.Join(dir, "prometheus.yml")
		Expect(os.WriteFile(file, fmt.Appendf(nil, clusterPrometheusConfig, address, strings.TrimPrefix(kubelet.URL, "http://")), 0o600)).To(Succeed())
		server, err := group.Start(process.Spec{
			Name: "prometheus", Path: prometheus, Dir: dir, Log: filepath.Join(dir, "prometheus.log"),
			Args: []string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address},
		})
		Expect(err).NotTo(HaveOccurred())
		pid <- server.Handle().PID()
		own := func() (cpu float64, at time.Time) { return cpuCounter(ctx, "http://"+address+"/metrics"), time.Now() }

		options := clusterprometheus.Options{
			Address: clusterprometheus.Address{URL: "http://" + address},
			Program: clusterprometheus.Program{Namespace: "istio-system", Deployment: "istiod", Pods: []string{"istiod-7c9-abcde"}, Container: "discovery"},
		}
		var source *clusterprometheus.Source
		Eventually(func() error {
			if source = clusterprometheus.Look(ctx, options); source.Err != nil {
				return source.Err
			}
			long := time.Time{} // samples of whatever moment are enough
			return errors.Join(source.Await(ctx, clusterprometheus.Own, long), source.Await(ctx, clusterprometheus.Cadvisor, long))
		}).WithContext(ctx).Should(Succeed())
		Expect(source.Version).To(MatchRegexp(`^\d+\.\d+`))
		for _, kind := range []clusterprometheus.Kind{clusterprometheus.Own, clusterprometheus.Cadvisor} {
			Expect(source.Await(ctx, kind, time.Now())).To(Succeed())
		}

		By("using processor time in a window")
		before, begin := own()
		for now := before; time.Since(begin) < 4*time.Second || now < before+0.1; { // a slow machine answers few in that time
			now, _ = own()
		}
		end := time.Now()
		after, _ := own()
		used := after - before
		Expect(used).To(BeNumerically(">=", 0.1))
		for _, kind := range []clusterprometheus.Kind{clusterprometheus.Own, clusterprometheus.Cadvisor} {
			Expect(source.Await(ctx, kind, end.Add(2*time.Second))).To(Succeed())
			m, err := source.Read(ctx, kind, begin, end)
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Pods()).To(Equal(options.Program.Pods))
			Expect(m.Interval.Seconds()).To(BeNumerically("~", 1, 0.5))
			Expect(m.Older).To(BeNumerically("<", 5*time.Second), "timestamps are honored: values are not as old as housekeeping allows")
			u, there := m.Usage("istiod-7c9-abcde", begin, end)
			Expect(there).To(BeTrue())
			Expect(u.Err).NotTo(HaveOccurred())
			Expect(u.Restarts).To(BeZero())
			const resolution = 0.05 // of clock ticks, at both edges, and of the requests around them
			Expect(u.Low).To(BeNumerically("<=", used+resolution))
			Expect(u.High).To(HaveValue(BeNumerically(">=", used-resolution)))
			Expect(u.CPUSeconds).To(HaveValue(And(BeNumerically(">=", u.Low), BeNumerically("<=", *u.High))))
			Expect(u.Resident.Peak).To(BeNumerically(">", 20e6))
			Expect(u.WorkingSet == nil).To(Equal(kind == clusterprometheus.Own))
			Expect(m.Together(begin, end).CPUSeconds).To(HaveValue(Equal(*u.CPUSeconds)))
			short, _ := m.Usage("istiod-7c9-abcde", begin, begin.Add(10*time.Millisecond))
			Expect(short.CPUSeconds).To(BeNil())
			Expect(short.Err).To(MatchError(ContainSubstring("lie in the phase of 10ms: want 2 or more")))
		}

		By("asking for pods that it does not have")
		options.Program.Pods, options.Program.Deployment = []string{"other"}, ""
		Expect(clusterprometheus.Look(ctx, options).Err).To(MatchError(ContainSubstring("of pods istio-system/other")))

		By("ending it")
		Expect(server.Stop(ctx)).To(Succeed())
		_, err = source.Read(ctx, clusterprometheus.Own, begin, end)
		Expect(err).To(MatchError(ContainSubstring("connection refused")))
	}, SpecTimeout(2*time.Minute))
})

var cpuLine = regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`)

// cpuCounter is the processor time of a program, by its own metrics.
func cpuCounter(ctx context.Context, url string) float64 {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	match := cpuLine.FindSubmatch(text)
	Expect(match).NotTo(BeNil())
	v, err := strconv.ParseFloat(string(match[1]), 64)
	Expect(err).NotTo(HaveOccurred())
	return v
}

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

const (
	// agreement is the share by which a figure may differ from the one in the record.
	agreement = 0.02
	// tick is the resolution of processor times that the kernel reports in ticks.
	tick = 0.010
	// ownTicks is the largest error of process_cpu_seconds_total, in seconds: it is
	// the sum of user and system time from
	// /proc/PID/stat, and the kernel rounds each down to a tick at every reading.
	ownTicks = 2 * tick
)

// expectRecomputed computes the control plane's and the cluster's cores and
// memory a second time, from a run's time series in a plain Prometheus.
func expectRecomputed(ctx context.Context, run record.Run) {
	GinkgoHelper()
	prom := open(ctx, filepath.Join(run.Dir, "prometheus"))
	name := run.Environment.ControlPlane.Name
	for _, phase := range run.Phases {
		programs := map[string]*record.Usage{}
		if slot := run.ControlPlane.At(phase.Name); slot != nil {
			programs[name] = *slot
		}
		for program, phases := range run.Cluster {
			if slot := phases.At(phase.Name); slot != nil {
				programs[program] = *slot
			}
		}
		for program, usage := range programs {
			what := fmt.Sprintf("%s in %s", program, phase.Name)
			length := known(phase.Seconds)

			cpu := prom.series(ctx, `scaler_component_cpu_seconds_total{component="`+program+`"}`, phase)
			used := cpu.at(known(phase.End)) - cpu.at(phase.Start)
			Expect(used).To(BeNumerically("~", known(usage.CPUSeconds), agreement*known(usage.CPUSeconds)+tick), "CPU seconds of "+what)
			Expect(used/length).To(BeNumerically("~", known(known(usage.Cores).Mean), agreement*known(known(usage.Cores).Mean)+tick/length), "cores of "+what)

			// What the program says itself was scraped before and after the edges:
			// it bounds the phase from inside and outside.
			own := prom.series(ctx, `process_cpu_seconds_total{job="`+program+`"}`, phase)
			took := prom.series(ctx, `scrape_duration_seconds{job="`+program+`"}`, phase)
			inside, outside := own.between(took, phase.Start, known(phase.End))
			Expect(known(usage.CPUSeconds)).To(BeNumerically(">=", inside*(1-agreement)-ownTicks), what+": less than the program counted within")
			Expect(known(usage.CPUSeconds)).To(BeNumerically("<=", outside*(1+agreement)+ownTicks), what+": more than the program counted around")

			memory := prom.series(ctx, `process_resident_memory_bytes{job="`+program+`"}`, phase)
			least, most := memory.meanWithin(phase.Start, known(phase.End))
			Expect(known(known(usage.MemoryBytes).Mean)).To(BeNumerically(">=", least*(1-agreement)), "memory of "+what)
			Expect(known(known(usage.MemoryBytes).Mean)).To(BeNumerically("<=", most*(1+agreement)), "memory of "+what)
		}
	}
}

// plainPrometheus is one that opens what a run left.
type plainPrometheus struct{ api promv1.API }

// open starts a plain Prometheus on a copy of a TSDB, for the spec.
func open(ctx context.Context, tsdb string) plainPrometheus {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.CopyFS(filepath.Join(dir, "data"), os.DirFS(tsdb))).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "prometheus.yml"), nil, 0o644)).To(Succeed())
	ports, err := process.FreePorts(1)
	Expect(err).NotTo(HaveOccurred())
	address := "127.0.0.1:" + strconv.Itoa(ports[0])

	group, err := process.OpenGroup(filepath.Join(dir, "group"), process.GroupOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(group.Stop(ctx)).To(Succeed()) })
	p, err := group.Start(process.Spec{
		Name: "prometheus", Path: prometheus, Dir: dir, Log: filepath.Join(dir, "log"),
		Args: []string{"--storage.tsdb.path=data", "--web.listen-address=" + address},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(p.WaitReady(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/-/ready", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", response.Status)
		}
		return nil
	})).To(Succeed())
	client, err := api.NewClient(api.Config{Address: "http://" + address})
	Expect(err).NotTo(HaveOccurred())
	return plainPrometheus{promv1.NewAPI(client)}
}

// series returns the samples of the one series of a selector in a phase and some
// seconds around it.
func (p plainPrometheus) series(ctx context.Context, selector string, phase record.Phase) samples {
	GinkgoHelper()
	const around = 10 * time.Second
	length := phase.End.Sub(phase.Start) + 2*around
	result, _, _, err := p.api.Query(ctx, fmt.Sprintf("%s[%dms]", selector, length.Milliseconds()), phase.End.Add(around))
	Expect(err).NotTo(HaveOccurred())
	matrix, ok := result.(model.Matrix)
	Expect(ok).To(BeTrue())
	Expect(matrix).To(HaveLen(1), selector)
	return samples(matrix[0].Values)
}

// value returns the value of a query of one series at a moment.
func (p plainPrometheus) value(ctx context.Context, query string, at time.Time) float64 {
	GinkgoHelper()
	result, _, _, err := p.api.Query(ctx, query, at)
	Expect(err).NotTo(HaveOccurred())
	Expect(result).To(HaveLen(1), query)
	return float64(result.(model.Vector)[0].Value)
}

// samples are the samples of one series, in order of time.
type samples []model.SamplePair

// at returns the value at a moment, interpolated linearly between samples.
func (s samples) at(t time.Time) float64 {
	moment := seconds(t)
	for i, b := range s {
		end := seconds(b.Timestamp.Time())
		if end < moment {
			continue
		}
		if i == 0 {
			return float64(b.Value)
		}
		a := s[i-1]
		start := seconds(a.Timestamp.Time())
		return float64(a.Value) + float64(b.Value-a.Value)*(moment-start)/(end-start)
	}
	return float64(s[len(s)-1].Value)
}

// between returns the least and the greatest growth of a counter within a window:
// from the first reading in it to the last, and from the last before it to the
// first after it. A sample carries the time when its scrape began; the program
// read its counter at some time until took later. Inside is zero without two
// readings in the window.
func (s samples) between(took samples, from, to time.Time) (inside, outside float64) {
	before, after := s[0], s[len(s)-1]
	var first, last *model.SamplePair
	for i := range s {
		begun := s[i].Timestamp.Time()
		done := begun.Add(time.Duration(took.at(begun) * float64(time.Second)))
		if !done.After(from) {
			before = s[i]
		}
		if !begun.Before(from) && !done.After(to) {
			if first == nil {
				first = &s[i]
			}
			last = &s[i]
		}
		if !begun.Before(to) && begun.Before(after.Timestamp.Time()) {
			after = s[i]
		}
	}
	if first != nil {
		inside = float64(last.Value - first.Value)
	}
	return inside, float64(after.Value - before.Value)
}

// meanWithin bounds the mean over a window, weighted by time: between two
// samples the value was somewhere between theirs.
func (s samples) meanWithin(from, to time.Time) (least, most float64) {
	for i := 1; i < len(s); i++ {
		a, b := s[i-1].Timestamp.Time(), s[i].Timestamp.Time()
		if a.Before(from) {
			a = from
		}
		if b.After(to) {
			b = to
		}
		if share := b.Sub(a).Seconds() / to.Sub(from).Seconds(); share > 0 {
			least += share * float64(min(s[i-1].Value, s[i].Value))
			most += share * float64(max(s[i-1].Value, s[i].Value))
		}
	}
	return least, most
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

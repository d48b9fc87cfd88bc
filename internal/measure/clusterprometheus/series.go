package clusterprometheus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"scaler.mesh/scaler/internal/timeseries"
)

// Kind names the source of a program's metrics.
type Kind string

// The kinds.
const (
	Own      Kind = "ownMetrics" // its own, of its process
	Cadvisor Kind = "cadvisor"   // of its container, by the cAdvisor of the kubelet
)

// The metrics that are read, by kind. Those of memory are resident memory; the working set is cAdvisor's alone.
var (
	cpuOf    = map[Kind]string{Own: "process_cpu_seconds_total", Cadvisor: "container_cpu_usage_seconds_total"}
	memoryOf = map[Kind]string{Own: "process_resident_memory_bytes", Cadvisor: "container_memory_rss"}
	startOf  = map[Kind]string{Own: "process_start_time_seconds", Cadvisor: "container_start_time_seconds"}
)

const workingSet = "container_memory_working_set_bytes"

const (
	// before is the time before a window in which samples are requested, too: usage at its start follows from the last sample before it.
	before = 2 * time.Minute
	// housekeeping is the greatest age of a value of cAdvisor when it is scraped: it reads a container every 10 to 20 s, unless its kubelet
	// is set otherwise.
	housekeeping = 20 * time.Second
	// longScrape is taken for the time of a scrape that is not known.
	longScrape = time.Second
)

// Metrics holds the samples that a Prometheus has of a program.
type Metrics struct {
	Interval   time.Duration // median time between two samples
	LongestGap time.Duration // the longest
	// Ahead is by how much the clock of the Prometheus is before this machine's; 0 = not by more than what is not known. Samples and starts are
	// moved by it to this machine's clock. The clocks of the nodes, which cAdvisor's own timestamps are of, are assumed to agree with it.
	Ahead time.Duration
	// A value is of a moment from Older before its timestamp to Newer after it, by this machine's clock.
	Older, Newer time.Duration

	pods map[string]*pod
}

// pod holds the samples of one pod of the program.
type pod struct {
	lives              []life // of its processor time, in order of time
	memory, workingSet []Sample
}

// life holds the samples of a process, or a container, from its start to its end.
type life struct {
	started time.Time // zero = that is not known
	samples []Sample  // of processor time, at least one
	ended   bool      // another follows, or there are no samples any more
}

// Pods returns the names of the pods that have samples.
func (m *Metrics) Pods() []string { return slices.Sorted(maps.Keys(m.pods)) }

// failures is the number of failed requests in a row after which a Prometheus is not asked again.
const failures = 5

// Await returns when the Prometheus has samples after a moment of every pod of a kind that still has any. It fails when ctx ends, when the
// Prometheus cannot be asked, and when it had no metrics of that kind when it was looked at.
func (s *Source) Await(ctx context.Context, kind Kind, moment time.Time) error {
	if !s.has[kind] {
		return fmt.Errorf("waiting for samples of %s: it had none before the run", cpuOf[kind])
	}
	const often = 2 * time.Second
	ticker := time.NewTicker(often)
	defer ticker.Stop()
	expr := "time() - min(timestamp(" + s.program.selector(kind, cpuOf[kind]) + "))" // an age, which is the same by all clocks
	for failed := 0; ; {
		asked := time.Now()
		result, err := s.client.query(ctx, expr, time.Time{})
		if failed++; err == nil {
			failed = 0
		}
		if failed == failures {
			return fmt.Errorf("waiting for samples of %s: %w", cpuOf[kind], err)
		}
		if vector, ok := result.(model.Vector); err == nil && ok && len(vector) == 1 && float64(vector[0].Value) <= asked.Sub(moment).Seconds() {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for samples of %s: %w", cpuOf[kind], context.Cause(ctx)), err)
		case <-ticker.C:
		}
	}
}

// selector returns the PromQL selector of a metric of the program. Of its own metrics, container is a label only where the Prometheus
// found the pod as an endpoint.
func (p Program) selector(kind Kind, metric string) string {
	container := p.Container
	if kind == Own {
		container += "|"
	}
	return fmt.Sprintf("%s{namespace=%q,pod=~%q,container=~%q}", metric, p.Namespace, p.pods(), container)
}

// Read reads what the Prometheus has of a kind in [from, to], and as much around it as is needed. Both are moments of
// this machine's clock.
func (s *Source) Read(ctx context.Context, kind Kind, from, to time.Time) (*Metrics, error) {
	defer s.client.idle()
	ahead, uncertain, err := s.client.clock(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading its clock: %w", err)
	}
	m := &Metrics{pods: map[string]*pod{}}
	if ahead.Abs() > uncertain {
		m.Ahead, ahead = ahead, 0
	}
	m.Older, m.Newer = uncertain+max(0, ahead), uncertain+max(0, -ahead)
	begin, now := from.Add(m.Ahead-before), time.Now().Add(m.Ahead)
	samples := func(metric, selector string) ([]line, error) {
		lines, err := s.client.samples(ctx, selector, begin, now)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", metric, err)
		}
		for _, l := range lines {
			for i := range l.samples {
				l.samples[i].At = l.samples[i].At.Add(-m.Ahead)
			}
		}
		return lines, nil
	}
	read := func(metric string) ([]line, error) { return samples(metric, s.program.selector(kind, metric)) }
	cpu, err := read(cpuOf[kind])
	if err != nil {
		return nil, err
	}
	cpu = slices.DeleteFunc(cpu, func(l line) bool { c := l.labels["cpu"]; return c != "" && c != "total" })
	if len(cpu) == 0 {
		return nil, fmt.Errorf("it has no %s from %s to %s", s.program.selector(kind, cpuOf[kind]), clock(from), clock(to))
	}
	views := viewsOf(cpu)
	cpu = within(cpu, views)
	starts, err := read(startOf[kind])
	if err != nil {
		return nil, err
	}
	for _, l := range starts {
		for i := range l.samples {
			l.samples[i].Value -= m.Ahead.Seconds()
		}
	}
	m.take(cpu, within(starts, views), s.program.Pods)
	memory, err := read(memoryOf[kind])
	if err != nil {
		return nil, err
	}
	m.level(within(memory, views), func(p *pod) *[]Sample { return &p.memory })
	if kind == Cadvisor {
		set, err := read(workingSet)
		if err != nil {
			return nil, err
		}
		m.level(within(set, views), func(p *pod) *[]Sample { return &p.workingSet })
	}
	const duration = "scrape_duration_seconds"
	took, err := samples(duration, duration+targets(cpu))
	if err != nil {
		return nil, err
	}
	m.scrapes(kind, cpu, took)
	return m, nil
}

// ofLife lists the labels that distinguish a container from the one before it in its pod. The others are of the pod and of the scrape.
var ofLife = []model.LabelName{model.MetricNameLabel, "id", "name", "image", "uid", "cpu", "container_id"}

// viewsOf has, by pod, the labels of the scrape that has the most samples: the same program may be scraped by several jobs, or by several
// servers whose series are together.
func viewsOf(lines []line) map[string]string {
	count := map[string]map[string]int{}
	for _, l := range lines {
		pod := podOf(l)
		if count[pod] == nil {
			count[pod] = map[string]int{}
		}
		count[pod][view(l)] += len(l.samples)
	}
	views := map[string]string{}
	for pod, of := range count {
		best := 0
		for _, v := range slices.Sorted(maps.Keys(of)) {
			if of[v] > best {
				best, views[pod] = of[v], v
			}
		}
	}
	return views
}

func podOf(l line) string { return string(l.labels["pod"]) }

func view(l line) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(l.labels)) {
		if !slices.Contains(ofLife, name) {
			fmt.Fprintf(&b, "%s=%q,", name, l.labels[name])
		}
	}
	return b.String()
}

func within(lines []line, views map[string]string) []line {
	return slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return view(l) != views[podOf(l)] })
}

// missedScrapes is the number of intervals without a sample, while others have samples, after which a pod is taken to have ended.
const missedScrapes = 5

// take makes lives of series: each series is one, and one more begins where its counter falls, or its start is a later one. The pods that stay
// are there to the end, whether there are samples or not.
func (m *Metrics) take(cpu, starts []line, stay []string) {
	var gaps []time.Duration
	var newest time.Time
	for _, l := range cpu {
		p := m.pods[podOf(l)]
		if p == nil {
			p = &pod{}
			m.pods[podOf(l)] = p
		}
		begin := 0
		for i, s := range l.samples {
			newest = timeseries.Later(newest, s.At)
			if i > 0 {
				gaps = append(gaps, s.At.Sub(l.samples[i-1].At))
			}
			if i+1 < len(l.samples) && l.samples[i+1].Value >= s.Value && !again(starts, l, i) {
				continue
			}
			own := l.samples[begin : i+1]
			p.lives = append(p.lives, life{samples: own, started: startedAt(starts, l.labels, own[0].At)})
			begin = i + 1
		}
	}
	slices.Sort(gaps)
	if len(gaps) > 0 {
		m.Interval, m.LongestGap = gaps[len(gaps)/2], gaps[len(gaps)-1]
	}
	for name, p := range m.pods {
		slices.SortStableFunc(p.lives, func(a, b life) int { return a.samples[0].At.Compare(b.samples[0].At) })
		for i := range p.lives {
			gone := !slices.Contains(stay, name) && p.lives[i].last().At.Add(missedScrapes*m.Interval).Before(newest)
			p.lives[i].ended = i+1 < len(p.lives) || gone
		}
	}
}

func (l life) last() Sample { return l.samples[len(l.samples)-1] }

// startMoves is the largest change of the reported start of a program that still runs: the start is computed from that of the machine, whose clock is adjusted.
const startMoves = 2 * time.Second

// again reports whether a program was started between a sample and the next.
func again(starts []line, l line, i int) bool {
	a, b := startedAt(starts, l.labels, l.samples[i].At), startedAt(starts, l.labels, l.samples[i+1].At)
	return !a.IsZero() && !b.IsZero() && b.Sub(a) > startMoves
}

// startedAt returns the start of the process, or container, that ran at a moment, by the metric of start times; zero without one.
func startedAt(starts []line, labels model.Metric, at time.Time) time.Time {
	for _, l := range starts {
		if l.labels["pod"] != labels["pod"] || l.labels["id"] != labels["id"] || l.labels["name"] != labels["name"] {
			continue
		}
		if i, _ := slices.BinarySearchFunc(l.samples, at, func(s Sample, t time.Time) int { return s.At.Compare(t) }); i < len(l.samples) {
			return time.UnixMilli(int64(l.samples[i].Value * 1000))
		}
	}
	return time.Time{}
}

// level adds the samples of memory of each pod.
func (m *Metrics) level(lines []line, of func(*pod) *[]Sample) {
	for _, l := range lines {
		p := m.pods[podOf(l)]
		if p == nil {
			continue
		}
		*of(p) = append(*of(p), l.samples...)
	}
	for _, p := range m.pods {
		slices.SortStableFunc(*of(p), func(a, b Sample) int { return a.At.Compare(b.At) })
		*of(p) = slices.CompactFunc(*of(p), func(a, b Sample) bool { return a.At.Equal(b.At) })
	}
}

// target identifies an endpoint that a Prometheus scrapes.
type target struct{ job, instance model.LabelValue }

func targetOf(l line) target { return target{l.labels["job"], l.labels["instance"]} }

// targets selects the series of the targets that series are from, and may select those of others.
func targets(lines []line) string {
	jobs, instances := map[string]bool{}, map[string]bool{}
	for _, l := range lines {
		t := targetOf(l)
		jobs[regexp.QuoteMeta(string(t.job))], instances[regexp.QuoteMeta(string(t.instance))] = true, true
	}
	oneOf := func(of map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(of)), "|") }
	return fmt.Sprintf("{job=~%q,instance=~%q}", oneOf(jobs), oneOf(instances))
}

// scrapes finds out of which moment a value is, of the target where that is known least. took are how long the scrapes of the
// targets took.
func (m *Metrics) scrapes(kind Kind, cpu, took []line) {
	scraped := map[target]map[int64]bool{}
	longest := map[target]time.Duration{}
	for _, l := range took {
		t := targetOf(l)
		if scraped[t] == nil {
			scraped[t] = map[int64]bool{}
		}
		for _, one := range l.samples {
			scraped[t][one.At.UnixMilli()] = true
			longest[t] = max(longest[t], time.Duration(one.Value*float64(time.Second)))
		}
	}
	honored := map[target]bool{} // the timestamps are cAdvisor's own
	for _, l := range cpu {
		t := targetOf(l)
		honored[t] = honored[t] || kind == Cadvisor && scraped[t] != nil && slices.ContainsFunc(l.samples, func(one Sample) bool { return !scraped[t][one.At.UnixMilli()] })
	}
	var older, newer time.Duration
	for t, own := range honored {
		if own {
			continue
		}
		if kind == Cadvisor {
			older = housekeeping
		}
		if scraped[t] == nil {
			newer = max(newer, longScrape)
		}
		newer = max(newer, longest[t])
	}
	m.Older, m.Newer = m.Older+older, m.Newer+newer
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }

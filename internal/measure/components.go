package measure

import "github.com/prometheus/client_golang/prometheus"

// components exposes what the sampler's components use, so that the run's TSDB
// holds it also of programs without metrics of their own. Samples carry the time
// of their reading, which is an edge's where there was one since the last scrape.
type components struct{ sampler *Sampler }

var (
	componentCPU = componentDesc("cpu_seconds_total",
		"Processor time used, user and system, by all processes that were this component.")
	componentResident = componentDesc("resident_memory_bytes", "Resident memory.")
	componentWaiting  = componentDesc("waiting_seconds_total",
		"Time that threads were ready to run and waited for a processor, added up over threads.")
	componentThreads  = componentDesc("threads", "Threads.")
	componentFiles    = componentDesc("open_files", "Open files.")
	componentRestarts = componentDesc("restarts_total", "Times that a process took the place of an earlier one.")
)

func componentDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "component", name), help, []string{"component"}, nil)
}

// Describe implements prometheus.Collector.
func (components) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		componentCPU, componentResident, componentWaiting, componentThreads, componentFiles, componentRestarts,
	} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (c components) Collect(ch chan<- prometheus.Metric) {
	next := c.sampler.next()
	for _, t := range next.all {
		send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64) {
			ch <- prometheus.NewMetricWithTimestamp(next.at, prometheus.MustNewConstMetric(desc, kind, value, t.name))
		}
		counter := func(desc *prometheus.Desc, value float64) { send(desc, prometheus.CounterValue, value) }
		gauge := func(desc *prometheus.Desc, value float64) { send(desc, prometheus.GaugeValue, value) }
		counter(componentCPU, t.cpu.Seconds())
		counter(componentRestarts, float64(t.restarts))
		if t.waited >= 0 {
			counter(componentWaiting, t.waited.Seconds())
		}
		// Of one that has ended they are 0: with times of their own, series that end
		// are taken to go on as they were.
		var now Reading
		if t.running {
			now = t.now
		}
		gauge(componentResident, float64(now.Resident))
		gauge(componentThreads, float64(now.Threads))
		gauge(componentFiles, float64(now.Files))
	}
}

package main

const (
	// lateLag is the lag at which a record warns of a late instrument, in seconds.
	lateLag = 0.010
	// scrapeTimeout is when a run's Prometheus gives a scrape up, in seconds.
	scrapeTimeout = 0.95
)

// instrument shows what the measuring itself costs, and how far it can be trusted.
func instrument() board {
	const itself = `component="scaler"`
	const job = `job="scaler"`
	return board{
		uid: "scaler-instrument", title: "scaler / Instrument",
		about: "What measuring costs, and how far it can be trusted: a late or starved instrument measures itself.",
		rows: []row{
			{"scaler", []panel{
				{
					title: "Builds", unit: "short", draw: values,
					about:   "The versions of scaler that measured the runs. Figures are compared between runs of one version.",
					queries: []query{{"", `max by (run, mode, version, revision, go_version) (last_over_time(` + sel("scaler_build_info") + `[$__range]))`}},
				},
				{
					title: "Lag", unit: "s", limit: lateLag,
					about:   "The delay with which scaler itself got to run (instrument.lag). Every time that it measures is late by up to that much; a p99 above 10 ms, the line, is a warning in the record.",
					queries: quantiles("scaler_scheduling_lag_seconds"),
				},
				{
					title: "Cores", unit: "suffix: cores",
					about:   "Processor time of scaler itself, per second (instrument.cores): the simulated sidecars, mostly. On one machine it is taken from the control plane.",
					queries: []query{{"{{run}}", perSecond(sel("scaler_component_cpu_seconds_total", itself))}},
				},
				{
					title: "Cores, against the control plane's", unit: "percentunit",
					about:   "scaler's cores as a share of the control plane's. What is simulated should cost less than what is measured.",
					queries: []query{{"{{run}}", phased(sumRate(sel("scaler_component_cpu_seconds_total", itself)) + ` / (` + sumRate(sel("scaler_component_cpu_seconds_total", `component=~"$control_plane"`)) + ` > 0)`)}},
				},
				{
					title: "Memory", unit: "bytes",
					about: "Resident memory of scaler itself (instrument.memoryBytes), and its live heap.",
					queries: []query{
						{"{{run}} resident", gauge(sel("scaler_component_resident_memory_bytes", itself))},
						{"{{run}} live heap", gauge(sel("go_gc_heap_live_bytes", job))},
					},
				},
				{
					title: "Waiting for a processor", unit: "suffix: threads",
					about:   "Threads of scaler that were ready to run and waited for a processor, on average. What they wait is in its lag.",
					queries: []query{{"{{run}}", perSecond(sel("scaler_component_waiting_seconds_total", itself))}},
				},
				{
					title: "Goroutines", unit: "short",
					about:   "Goroutines of scaler: several for each simulated sidecar.",
					queries: []query{{"{{run}}", gauge(sel("go_goroutines", job))}},
				},
				{
					title: "Open files, of those allowed", unit: "percentunit", limit: 1,
					about:   "Open files of scaler as a share of what the system allows it: one for each connection. At 1, the line, no more sidecars can connect.",
					queries: []query{{"{{run}}", phased(`sum by (run, mode) (` + sel("process_open_fds", job) + `) / sum by (run, mode) (` + sel("process_max_fds", job) + `)`)}},
				},
				{
					title: "Garbage collections", unit: "cps",
					about:   "Collections of scaler's own garbage, per second.",
					queries: []query{{"{{run}}", perSecond(sel("go_gc_cycles_total_gc_cycles_total", job))}},
				},
			}},
			{"Recorder", []panel{
				{
					title: "Time of a scrape", unit: "s", limit: scrapeTimeout,
					about:   "Time that Prometheus waited for a program's metrics. A scrape that takes longer than 0.95 s, the line, is a gap.",
					queries: []query{{"{{run}} {{job}}", gauge(sel("scrape_duration_seconds"), "job")}},
				},
				{
					title: "Failed scrapes", unit: "short",
					about:   "Programs whose last scrape failed. The record warns of gaps; cores and resident memory are read from /proc and have none.",
					queries: []query{{"{{run}} {{job}}", phased(`sum by (run, mode, job) (1 - ` + sel("up") + `)`)}},
				},
				{
					title: "Samples of a scrape", unit: "short", draw: stacked,
					about:   "Samples that a scrape of a program brings, after the API server's largest histograms are dropped.",
					queries: []query{{"{{run}} {{job}}", gauge(sel("scrape_samples_post_metric_relabeling"), "job")}},
				},
			}},
		},
	}
}

package main

const (
	// lateLag is the lag at which a record warns of a late instrument, in seconds.
	lateLag = 0.010
	// scrapeTimeout is the scrape timeout of a run's Prometheus, in seconds.
	scrapeTimeout = 0.95
)

// instrument shows the cost of the measurement itself, and how far it can be trusted.
func instrument() board {
	itself := of(`component="scaler"`) // as seen from outside
	scaler := of(`job="scaler"`)       // as it reports
	return board{
		uid: "scaler-instrument", title: "scaler / Instrument",
		about: "What measuring costs, and how far it can be trusted: a late or starved instrument measures itself.",
		rows: []row{
			thirds("scaler",
				values("Builds", unit("short"),
					"The versions of scaler that measured the runs. Figures are compared between runs of one version.",
					aggregate("max", last(metric("scaler_build_info")), "version", "revision", "go_version")),
				lines("Lag", figures("instrument.lag"),
					"The delay with which scaler itself got to run. Every time that it measures is late by up to that much. A p99 above 10 ms, the line, over the whole rollout is a warning in the record; here it is of a moment.",
					quantiles("scaler_scheduling_lag_seconds")...).limited(lateLag),
				lines("Cores", figures("instrument.cores"),
					"Processor time of scaler itself, per second: the simulated sidecars, mostly. On one machine it is taken from the control plane.",
					rate(itself("scaler_component_cpu_seconds_total"))),
				lines("Cores, against the control plane's", unit("percentunit"),
					"scaler's cores as a share of the control plane's. What is simulated should cost less than what is measured.",
					ratio(rate(itself("scaler_component_cpu_seconds_total")), rate(process("scaler_component_cpu_seconds_total")))),
				lines("Memory", figures("instrument.memoryBytes"),
					"Resident memory of scaler itself, and its live heap.",
					sum(itself("scaler_component_resident_memory_bytes")).as("resident"),
					sum(scaler("go_gc_heap_live_bytes")).as("live heap")),
				lines("Waiting for a processor", unit("suffix: threads"),
					"Threads of scaler that were ready to run and waited for a processor, on average. What they wait is in its lag.",
					rate(itself("scaler_component_waiting_seconds_total"))),
				lines("Goroutines", unit("short"),
					"Goroutines of scaler: several for each simulated sidecar.",
					sum(scaler("go_goroutines"))),
				lines("Open files, of those allowed", unit("percentunit"),
					"Open files of scaler as a share of what the system allows it: one for each connection. At 1, the line, no more sidecars can connect.",
					combine(sum(scaler("process_open_fds")), "/", sum(scaler("process_max_fds")))).limited(1),
				lines("Garbage collections", unit("cps"),
					"Collections of scaler's own garbage, per second.",
					rate(scaler("go_gc_cycles_total_gc_cycles_total"))),
			),
			thirds("Recorder",
				lines("Time of a scrape", unit("s"),
					"The longest that Prometheus waited for a program's metrics. Where time is not slowed down, a scrape of the control plane that takes longer than 0.95 s, the line, is a gap. Drawn outside of the chosen phases too.",
					worst(metric("scrape_duration_seconds"), "job")).limited(scrapeTimeout).outside(),
				lines("Failed scrapes", unit("percentunit"),
					"Of a program's scrapes those that failed; one that was never made is not among them. The record warns of gaps, both kinds counted. Processor time and resident memory are read from /proc, and miss nothing but what they would have drawn then. Drawn outside of the chosen phases too: while scaler cannot be scraped no phase is known, and every other panel is empty.",
					unfulfilled(metric("up"), "job")).outside(),
				stack("Samples of a scrape", unit("short"),
					"Samples that a scrape of a program brings, after the API server's largest histograms are dropped.",
					sum(metric("scrape_samples_post_metric_relabeling"), "job")),
			),
		},
	}
}

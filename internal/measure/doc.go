// Package measure measures what a run uses, from outside of its programs.
//
// It has three sources. A [Recorder] runs a Prometheus server that scrapes every
// component each second, or each [ClusterInterval], answers queries over a phase's window,
// and leaves a TSDB that any Prometheus opens. A [Sampler] reads processes of
// this machine from /proc, each second and exactly at the edges of phases, where
// a scrape would be up to a second off; processor time, resident memory and
// saturation come from it. [Metrics] are scaler's own metrics, scraped like all
// others, and [Lag] measures the scheduling lag of scaler itself.
//
// Phases, the list of components, and the interpretation of figures are left to the
// caller. Prometheus's types stay in this package: its API has plain numbers, times
// and structs. It needs Linux.
package measure

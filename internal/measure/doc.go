// Package measure watches a run from outside and answers what it cost.
//
// It has three sources. A [Recorder] is a real Prometheus server next to the
// run: it scrapes every component each second, is asked over a phase's window,
// and leaves a TSDB that any Prometheus opens. A [Sampler] reads processes of
// this machine from /proc, each second and at the very edges of phases, where
// a scrape would be up to a second off; processor time, resident memory and
// saturation come from it. [Metrics] are scaler's own, scraped like everybody
// else's, and [Lag] states how late the instrument itself was.
//
// What a phase is, which components there are and what the figures mean for a
// verdict is left to the caller. Prometheus's own types stay in here: what goes
// in and out is plain numbers, times and structs. It needs Linux.
package measure

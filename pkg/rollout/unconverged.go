package rollout

import (
	"fmt"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// explained is how many sidecars are named that lack something.
const explained = 3

// lacking says in words what the mesh still lacks to have converged, one line
// for each kind of thing; nothing if it lacks nothing.
func (f *fleet) lacking() []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }

	sidecars := 0
	var missing []string
	for _, t := range f.trackers() {
		sidecars += t.Counts().Sidecars
		missing = append(missing, t.Missing(explained)...)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	there, ready, old, healthy := 0, 0, 0, 0
	for _, p := range f.pods {
		switch {
		case p.gone:
			continue
		case p.number < f.apart.renewed:
			old++
		case p.ready:
			ready++
		}
		there++
	}
	for _, endpoints := range f.listed {
		for _, health := range endpoints {
			if health == convergence.Healthy {
				healthy++
			}
		}
	}
	if there != f.wanted {
		say("%d pods are there, want %d", there, f.wanted)
	}
	if old > 0 {
		say("%d pods were not replaced yet", old)
	}
	if ready+old < there {
		say("%d pods are not ready", there-ready-old)
	}
	if sidecars != there {
		say("%d pods have a sidecar, of %d", sidecars, there)
	}
	if healthy != f.healthy {
		say("the API server lists %d healthy endpoints, want %d", healthy, f.healthy)
	}
	if f.away > 0 {
		say("%d sidecars lost their stream and are not back", f.away)
	}
	for _, line := range missing {
		say("sidecar %s", line)
	}
	return lines
}

// explain puts into the record what the mesh lacked when a time limit passed, and
// says it at once.
func (r *rolloutRun) explain(about string) {
	for _, line := range r.fleet.lacking() {
		r.warn(record.Warning{About: about, Reason: record.ReasonUnconverged, Detail: line})
		r.progress.say("when the time limit passed: " + line)
	}
}

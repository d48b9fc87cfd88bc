package latency

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/record"
)

// rowRun collects the data of one row: one placement, rate and variant.
type rowRun struct {
	placement   int     // index; 0 where there are none
	rps         float64 // 0 in a closed loop
	connections int
	variant     int // index
	repeats     []*repeatRun
}

// repeatRun sums all rounds of one repeat of a row.
type repeatRun struct {
	latency, lateness *stats.Histogram
	requests          int64
	answered          int64
	notSent           int64
	errors            map[string]int64
	seconds           float64
	connections       int
	timeline          []dataplane.Second
	rounds            int
	sidecars          []usageSum // by tier
}

// usageSum sums the usage of one tier's sidecars over several windows.
type usageSum struct {
	cpuSeconds    float64
	memorySeconds float64 // bytes times seconds
	waited        float64 // upper bound of the seconds in which one thread waited for a processor, for the program that waited most
	unknown       bool    // that is not known of some window
}

// plan makes the rows to measure.
func (r *run) plan() {
	add := func(placement int, rps float64, connections int) {
		for v := range r.spec.Latency.Variants {
			c := &rowRun{placement: placement, rps: rps, connections: connections, variant: v}
			for range r.spec.Repeats {
				c.repeats = append(c.repeats, &repeatRun{
					latency: stats.NewHistogram(), lateness: stats.NewHistogram(), errors: map[string]int64{},
				})
			}
			r.cells = append(r.cells, c)
		}
	}
	for p := range max(1, len(r.spec.Latency.Placement)) {
		for _, rps := range r.spec.Latency.RPS {
			add(p, rps, 0)
		}
		for _, n := range r.spec.Latency.Connections {
			add(p, 0, n)
		}
	}
}

// turn is one round of one row.
type turn struct {
	level, variant, repeat, round int
}

// turns returns all rounds in the order in which they are run: rates one after another,
// and within each the variants forwards and backwards, so that drift affects all of them
// equally.
func turns(levels, variants, repeats, rounds int) []turn {
	var all []turn
	for level := range levels {
		for repeat := range repeats {
			for round := range rounds {
				for i := range variants {
					v := i
					if (repeat*rounds+round)%2 == 1 {
						v = variants - 1 - i
					}
					all = append(all, turn{level, v, repeat, round})
				}
			}
		}
	}
	return all
}

// measure does all rounds.
func (r *run) measure(ctx context.Context) (steps.Undo, error) {
	variants := len(r.spec.Latency.Variants)
	all := turns(len(r.cells)/variants, variants, r.spec.Repeats, r.spec.Latency.Rounds)
	level, repeat := -1, -1
	for i, t := range all {
		one := r.cells[t.level*variants+t.variant]
		if level >= 0 && t.level != level {
			if err := r.saveSoFar(); err != nil {
				return nil, err
			}
		}
		if t.level != level || t.repeat != repeat {
			level, repeat = t.level, t.repeat
			r.logf("%s, repeat %d of %d: %s in turn, in %s of each", one.describe(r.spec.Latency.Placement), repeat+1, r.spec.Repeats, list(r.spec.Latency.Variants), output.Many(r.spec.Latency.Rounds, "round"))
		}
		if r.progress.Status != nil {
			r.progress.Status(i, len(all))
		}
		if err := r.round(ctx, one, t); err != nil {
			return nil, fmt.Errorf("%s, variant %s: %w", one.describe(r.spec.Latency.Placement), r.spec.Latency.Variants[t.variant], err)
		}
		r.rounds++
	}
	return nil, nil
}

// describe names the load and the placement.
func (c *rowRun) describe(placements []string) string {
	text := strconv.FormatFloat(c.rps, 'f', -1, 64) + " RPS"
	if c.connections > 0 {
		text = output.Many(c.connections, "connection")
	}
	if len(placements) > 0 {
		text += ", " + placements[c.placement]
	}
	return text
}

// round runs one round and adds it to its row.
func (r *run) round(ctx context.Context, one *rowRun, t turn) error {
	bed := r.beds[one.placement*len(r.spec.Latency.Variants)+t.variant]
	result, err := r.send(ctx, one, t, bed)
	if err != nil {
		return err
	}
	to := one.repeats[t.repeat]
	to.rounds++
	to.latency.Merge(result.Latency)
	to.lateness.Merge(result.Lateness)
	to.requests += result.Requests
	to.answered += result.Answered
	to.notSent += result.NotSent
	for kind, n := range result.Errors {
		to.errors[kind] += n
	}
	to.seconds += result.End.Sub(result.Start).Seconds()
	to.connections = max(to.connections, result.Connections)
	to.timeline = append(to.timeline, result.Seconds...)
	return r.usage(to, bed, result)
}

// send makes the requests of one round.
func (r *run) send(ctx context.Context, one *rowRun, t turn, bed *testbed) (*dataplane.Result, error) {
	load := dataplane.Load{
		Target: bed.target, Dial: bed.dial, HTTP: r.spec.Latency.HTTP, NoKeepalive: !r.spec.Latency.Keepalive,
		Connections: r.spec.Latency.MaxConnections, Timeout: time.Duration(r.spec.Latency.Timeout), Warmup: time.Duration(r.spec.Latency.Warmup),
	}
	if one.connections > 0 {
		load.Connections = one.connections
		requests := r.spec.Latency.Requests*(t.round+1)/r.spec.Latency.Rounds - r.spec.Latency.Requests*t.round/r.spec.Latency.Rounds
		return bed.generator.Closed(ctx, dataplane.ClosedLoad{Load: load, Requests: requests})
	}
	open := dataplane.OpenLoad{
		Load: load, Arrivals: dataplane.Arrivals(r.spec.Latency.Arrivals), Rate: one.rps,
		Seed:     r.spec.Latency.Seed + uint64(t.repeat*r.spec.Latency.Rounds+t.round), // all variants have the same
		Duration: time.Duration(r.spec.Latency.Duration) / time.Duration(r.spec.Latency.Rounds),
	}
	if r.spec.Latency.KillServerEvery == 0 {
		return bed.generator.Open(ctx, open)
	}
	var result *dataplane.Result
	killing, stop := context.WithCancel(ctx)
	defer stop()
	group, killing := errgroup.WithContext(killing)
	group.Go(func() error { return r.kill(killing, bed) })
	result, err := bed.generator.Open(ctx, open)
	stop()
	if killErr := group.Wait(); err == nil && !errors.Is(killErr, context.Canceled) {
		err = killErr
	}
	return result, err
}

// kill kills one server of the last tier at a time, in turn, as long as a round lasts. A
// restart that has begun is completed, because the next round needs the server.
func (r *run) kill(ctx context.Context, bed *testbed) error {
	last := r.tiers[len(r.tiers)-1].replicas
	begun := time.Now().Add(time.Duration(r.spec.Latency.Warmup))
	for n := 0; ; n++ {
		if err := task.WaitUntil(ctx, begun.Add(time.Duration(n+1)*time.Duration(r.spec.Latency.KillServerEvery))); err != nil {
			return err
		}
		if err := bed.servers[n%last].kill(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

// endedTolerance is the largest difference, in seconds, between the time that a sidecar
// ran and the length of a round.
const endedTolerance = 0.01

// usage adds the usage of sidecars, and of scaler itself, in a round's window.
func (r *run) usage(to *repeatRun, bed *testbed, result *dataplane.Result) error {
	if _, err := r.sampler.Edge(); err != nil {
		return err
	}
	if err := context.Cause(r.sampling); err != nil {
		return err
	}
	if !result.End.After(result.Start) { // a closed loop of one request
		return nil
	}
	length := result.End.Sub(result.Start).Seconds()
	if to.sidecars == nil {
		to.sidecars = make([]usageSum, len(bed.sidecars))
	}
	for i, tier := range bed.sidecars {
		most := 0.0
		for _, name := range tier.names {
			u, err := r.sampler.Figures(name, result.Start, result.End)
			if err != nil {
				return err
			}
			if u.Ran < length-endedTolerance {
				return fmt.Errorf("reading sidecar %s: it has ended while requests were sent", name)
			}
			to.sidecars[i].cpuSeconds += u.CPUSeconds
			to.sidecars[i].memorySeconds += u.MemoryMean * length
			if u.Saturation == nil {
				to.sidecars[i].unknown = true
				continue
			}
			most = max(most, *u.Saturation)
		}
		to.sidecars[i].waited += most * length
	}
	own, err := r.sampler.Figures(bed.sampled, result.Start, result.End)
	r.own = append(r.own, own)
	return err
}

// measureInstrument computes the usage of scaler itself.
func (r *run) measureInstrument() {
	if len(r.own) == 0 {
		return
	}
	var sum, peak measure.Usage
	var length, waited float64
	for _, u := range r.own {
		sum.CPUSeconds += u.CPUSeconds
		length += u.CPUSeconds / max(u.CoresMean, 1e-9)
		peak.MemoryPeak = max(peak.MemoryPeak, u.MemoryPeak)
		peak.OpenFilesPeak = max(peak.OpenFilesPeak, u.OpenFilesPeak)
		if u.Saturation != nil {
			waited += *u.Saturation / float64(len(r.own))
		}
	}
	r.record.Instrument = &record.Instrument{MemoryBytes: &peak.MemoryPeak, OpenFiles: &peak.OpenFilesPeak}
	if length > 0 {
		r.record.Instrument.Cores = new(sum.CPUSeconds / length)
	}
	const much = 0.25
	if waited > much {
		r.warn(record.Warning{About: "rows", Reason: record.ReasonWaitedInstrument, Values: map[string]float64{"share": waited}})
	}
}

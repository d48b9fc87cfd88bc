package measure

import (
	"context"
	"sync"
	"time"
)

// BriefInterval is the length of the intervals of Usage.CoresPeakBrief, where time is not
// slowed down. Kubernetes enforces processor limits in periods of this length.
const BriefInterval = 100 * time.Millisecond

// cpuReader is a Source whose processor time alone can be read, at the cost of one
// system call.
type cpuReader interface {
	// ReadCPU returns Reading.CPU, and the moment of the reading.
	ReadCPU() (time.Time, time.Duration, error)
}

// brief finds the greatest processor time that programs use within a short interval.
// Intervals follow each other and do not cross edges. Of all readings only the greatest
// use between two edges is kept. Its methods may be called by several goroutines.
type brief struct {
	interval time.Duration // fixed before run

	mu    sync.Mutex
	names map[string]*briefTrack
}

// briefTrack follows one program.
type briefTrack struct {
	source  cpuReader
	at      time.Time // of the last reading of source; zero = there is none
	cpu     time.Duration
	current briefPeak // since the last edge
	peaks   []briefPeak
}

// briefPeak holds the greatest use between two edges.
type briefPeak struct {
	from, to  time.Time
	cores     float64
	intervals int
}

// watch begins with a life of a program. A source that cannot be read so often is left
// out.
func (b *brief) watch(name string, src Source) {
	reader, ok := src.(cpuReader)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.names == nil {
		b.names = map[string]*briefTrack{}
	}
	t := b.names[name]
	if t == nil {
		t = &briefTrack{current: briefPeak{from: time.Now()}}
		b.names[name] = t
	}
	t.source, t.at = reader, time.Time{}
	t.begin()
}

// begin begins an interval.
func (t *briefTrack) begin() {
	if t.source == nil {
		return
	}
	at, cpu, err := t.source.ReadCPU()
	if err != nil {
		t.source, at = nil, time.Time{} // it ended, which the Sampler finds out
	}
	t.at, t.cpu = at, cpu
}

// edge ends what is between two edges.
func (b *brief) edge(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.names {
		t.current.to = at
		t.peaks = append(t.peaks, t.current)
		t.current = briefPeak{from: at}
		t.begin()
	}
}

// read ends the intervals that are long enough, and returns after what time the next one
// will be.
func (b *brief) read() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.interval
	for _, t := range b.names {
		if t.at.IsZero() {
			continue
		}
		if left := b.interval - time.Since(t.at); left > 0 {
			next = min(next, left) // an edge began it
			continue
		}
		before, used := t.at, t.cpu
		if t.begin(); t.at.IsZero() {
			continue
		}
		t.current.intervals++
		t.current.cores = max(t.current.cores, (t.cpu-used).Seconds()/t.at.Sub(before).Seconds())
	}
	return next
}

// run reads until ctx is done.
func (b *brief) run(ctx context.Context) {
	timer := time.NewTimer(b.interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(b.read())
		}
	}
}

// peak returns the greatest use of a program within an interval in [from, to), which are
// edges; nil if it was not read there.
func (b *brief) peak(name string, from, to time.Time) *float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.names[name]
	if t == nil {
		return nil
	}
	var all briefPeak
	for _, p := range t.peaks {
		if !p.from.Before(from) && !p.to.After(to) {
			all.intervals += p.intervals
			all.cores = max(all.cores, p.cores)
		}
	}
	if all.intervals == 0 {
		return nil
	}
	return &all.cores
}

// WatchBriefly has the programs of these names read every [BriefInterval] as well, for
// Usage.CoresPeakBrief. It is called before Watch.
func (s *Sampler) WatchBriefly(names ...string) { s.briefly = names }

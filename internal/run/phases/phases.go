// Package phases measures the phases of a run: windows in time, at whose edges the
// counters of all processes are read. What happens in a phase, and which figures
// belong to it, is left to others.
package phases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// Body executes a phase. It returns when the phase is over, with what
// ended it.
type Body func(context.Context) (record.EndedBy, error)

// Window is a phase on the monotonic clock.
type Window struct {
	Name       record.PhaseName
	Begin, End time.Time
	Streams    int // of simulated sidecars that were open and answered at its end
	// Responses and Bytes are what simulated sidecars received in it.
	Responses, Bytes int64
}

// Options configures a timeline. All fields but the last one are needed.
type Options struct {
	Journal *journal.Journal          // takes the phases
	Edge    func() (time.Time, error) // reads the counters of all processes now
	Fleet   *fleet.Fleet              // whose streams are counted at the end of each phase
	Show    func(phase string)        // exports the phase that goes on, "" = none
	Say     func(msg string)          // shows progress
	// Explains is the object that explains why sidecars hold a resource otherwise than expected, "" = none is known;
	// nil = none ever is.
	Explains func(convergence.Difference) string
}

// Timeline is the sequence of the phases of a run. Its methods are safe for
// concurrent use; phases are measured one at a time.
type Timeline struct {
	Options // fixed after NewTimeline

	mu      sync.Mutex
	windows []Window // the phases that ended
	current State
}

// State is the phase that goes on.
type State struct {
	Phase  record.PhaseName // "" = none
	Since  time.Time
	Length time.Duration // of a phase of fixed length, else 0
}

// NewTimeline returns the timeline of a run, without a phase yet.
func NewTimeline(o Options) *Timeline { return &Timeline{Options: o} }

// lengthText states the length of a phase as figures have it and, where time was slowed down k times, the
// real time that it took.
func lengthText(name record.PhaseName, took time.Duration, k float64) string {
	if k == 1 {
		return fmt.Sprintf("%s: %.1f s", name, took.Seconds())
	}
	return fmt.Sprintf("%s: %.1f s, in %.1f s of real time", name, took.Seconds()/k, took.Seconds())
}

// Measure does one phase. The counters are read right before body begins and right
// after it has returned; the end of the phase is that moment, whatever ended it.
// length is the length of a phase of fixed length, else 0; it is only shown.
func (t *Timeline) Measure(ctx context.Context, name record.PhaseName, length time.Duration, body Body) error {
	index := t.open(name, length)
	t.Show(string(name))
	if err := t.Journal.Save(); err != nil {
		return err
	}
	// What was written to the disk before is no part of the phase.
	begin, err := t.Edge()
	if err != nil {
		return fmt.Errorf("reading the counters at the start of %s: %w", name, err)
	}
	t.begun(index, begin)
	responses, bytes := t.Fleet.Workers.Counts().AllResponses()
	endedBy, bodyErr := body(ctx)
	switch {
	case errors.Is(context.Cause(ctx), context.Canceled):
		endedBy = record.EndedByInterrupt
	case endedBy == "":
		endedBy = record.EndedByFailure
	}
	streams := t.Fleet.Pods.Streams()
	end, err := t.Edge()
	if err != nil && bodyErr == nil {
		bodyErr = fmt.Errorf("reading the counters at the end of %s: %w", name, err)
	}
	w := Window{Name: name, Begin: begin, End: end, Streams: streams}
	w.Responses, w.Bytes = t.Fleet.Workers.Counts().AllResponses()
	w.Responses, w.Bytes = w.Responses-responses, w.Bytes-bytes
	t.close(index, w, endedBy)
	t.Show("")
	t.Say(lengthText(name, end.Sub(begin), new(t.Journal.Run()).SlowdownIn(name)))
	if err := t.Journal.Save(); err != nil && bodyErr == nil {
		bodyErr = err
	}
	return bodyErr
}

// open enters a phase into the record and returns its index there.
func (t *Timeline) open(name record.PhaseName, length time.Duration) (index int) {
	now := time.Now()
	t.mu.Lock()
	t.current = State{name, now, length}
	t.mu.Unlock()
	t.Journal.Update(func(r *record.Run) {
		index = len(r.Phases)
		r.Phases = append(r.Phases, record.Phase{Name: name, Start: now.UTC()})
	})
	return index
}

// begun sets the moment at which the counters were read at the start.
func (t *Timeline) begun(index int, at time.Time) {
	t.mu.Lock()
	t.current.Since = at
	t.mu.Unlock()
	t.Journal.Update(func(r *record.Run) { r.Phases[index].Start = at.UTC() })
}

func (t *Timeline) close(index int, w Window, endedBy record.EndedBy) {
	t.Journal.Update(func(r *record.Run) {
		p := &r.Phases[index]
		p.End, p.Seconds, p.EndedBy = new(w.End.UTC()), new(w.End.Sub(w.Begin).Seconds()), endedBy
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.windows = append(t.windows, w)
	t.current = State{}
}

// Windows returns the phases that have ended, in order.
func (t *Timeline) Windows() []Window {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Window(nil), t.windows...)
}

// Current returns the phase that goes on.
func (t *Timeline) Current() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

// Wait returns the body of a phase of fixed length.
func Wait(length time.Duration) Body {
	return func(ctx context.Context) (record.EndedBy, error) {
		if err := task.WaitUntil(ctx, time.Now().Add(length)); err != nil {
			return "", err
		}
		return record.EndedByDuration, nil
	}
}

// EndedBy returns what ended a phase that waits until the mesh is at rest: settled, which is convergence or
// quiescence; err if it is set, unless it is the time limit of limited, or the end of the run's own context. After
// the time limit, and after quiescence, the record states what the mesh lacked, as a warning about a figure.
func (t *Timeline) EndedBy(ctx, limited context.Context, about string, settled record.EndedBy, err error) (record.EndedBy, error) {
	switch {
	case err == nil:
		t.Quiescent(about, settled)
		return settled, nil
	case ctx.Err() == nil && context.Cause(limited) == ErrUnconverged:
		t.Explain(about)
		return record.EndedByTimeout, ErrUnconverged
	default:
		return "", err
	}
}

// Quiescent records by what the mesh differs from what is expected, as a warning about a figure and as part of the phase that goes
// on or was the last one, if it is at rest by quiescence.
func (t *Timeline) Quiescent(about string, settled record.EndedBy) {
	if settled != record.EndedByQuiescent {
		return
	}
	all := t.Fleet.Differences()
	if len(all) == 0 {
		return
	}
	var kept []record.HoldingDifference
	explained := 0
	for _, d := range all {
		object := ""
		if t.Explains != nil {
			object = t.Explains(d)
		}
		if object != "" {
			explained++
		}
		if len(kept) < record.DifferencesKept {
			kept = append(kept, record.HoldingDifference{
				Type: d.Type.String(), Resource: d.Name, Sidecars: d.Sidecars, Example: d.Sidecar, Detail: strings.TrimSpace(d.Lacks), Object: object,
			})
		}
	}
	sidecars, phase := t.Fleet.Unconverged(), ""
	t.Journal.Update(func(r *record.Run) {
		p := &r.Phases[len(r.Phases)-1]
		p.Differences, p.MoreDifferences, phase = kept, len(all)-len(kept), string(p.Name)
	})
	t.Journal.Warn(record.Warning{
		About: about, Reason: record.ReasonQuiescent, Phase: record.PhaseName(phase), Detail: kept[0].Text(),
		Values: map[string]float64{"sidecars": float64(sidecars), "resources": float64(len(all)), "explained": float64(explained)},
	})
	t.Say(fmt.Sprintf("at rest, but %d sidecars hold %d resources otherwise than expected: %s", sidecars, len(all), kept[0].Text()))
}

// NotConvergedAgain warns that the mesh has not converged again within a limit, after what
// a part of the record is about; component names that part where there are several, else "".
func (t *Timeline) NotConvergedAgain(about, component string, limit time.Duration) {
	t.Journal.Warn(record.Warning{
		About: about, Reason: record.ReasonNotConvergedAgain, Component: component, Values: map[string]float64{"limitSeconds": limit.Seconds()},
	})
}

// Explain records what the mesh lacked when a time limit passed, as a warning about a
// figure, and shows it at once.
func (t *Timeline) Explain(about string) {
	for _, line := range t.Fleet.Lacking() {
		t.Journal.Warn(record.Warning{About: about, Reason: record.ReasonUnconverged, Detail: line})
		t.Say("when the time limit passed: " + line)
	}
}

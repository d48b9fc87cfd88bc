package supervision

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// life is one of a program that is not there.
type life struct {
	done chan struct{}
	err  error // set before done is closed
}

func (l *life) Usage() measure.Source { return measure.Self() }
func (l *life) Done() <-chan struct{} { return l.done }
func (l *life) Err() error            { return l.err }
func (l *life) Kill()                 { close(l.done) }
func (l *life) Stop(context.Context) error {
	close(l.done)
	return nil
}

// die ends it without being asked to.
func (l *life) die() {
	l.err = errors.New("signal: killed\nthe end of its log")
	close(l.done)
}

// program has a new life after each restart.
type program struct {
	restarted chan *life

	mu  sync.Mutex
	now *life
}

func newProgram() *program {
	return &program{restarted: make(chan *life, 1), now: &life{done: make(chan struct{})}}
}

func (p *program) Life() controlplane.Life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *program) Restart(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = &life{done: make(chan struct{})}
	p.restarted <- p.now
	return nil
}

// A program that ends by itself is restarted once, with a warning about its own figures; faults may end it
// as often as they like.
func TestSupervisor(t *testing.T) {
	for name, test := range map[string]struct {
		about string
		make  func(*program, Options) *Supervisor
	}{
		"the program that serves sidecars": {"controlPlane.", func(p *program, o Options) *Supervisor { return New("web", p, o) }},
		"one that helps it": {"cluster.web.", func(p *program, o Options) *Supervisor {
			return NewHelper(controlplane.Helper{Name: "web", Program: p}, o)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			writer, err := record.Create(t.TempDir(), "run")
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := writer.Close(); err != nil {
					t.Error(err)
				}
			}()
			journal := journal.New(record.Run{}, writer, func(err error) { t.Error(err) })
			p := newProgram()
			first := p.now
			s := test.make(p, Options{
				Sampler: measure.NewSampler(0), Journal: journal, Timeline: phases.NewTimeline(phases.Options{}),
				Say: func(string) {}, Standing: func() string { return "" },
			})
			ended := make(chan error, 1)
			go func() { ended <- s.Run(t.Context()) }()

			first.die()
			<-p.restarted
			var last *life
			for _, graceful := range []bool{false, true} {
				if err := s.End(t.Context(), graceful); err != nil {
					t.Fatal(err)
				}
				last = <-p.restarted
			}
			if warnings := journal.Run().Warnings; len(warnings) != 1 || warnings[0].Reason != record.ReasonCrashed ||
				!strings.HasPrefix(warnings[0].About, test.about) || warnings[0].Component != "web" || warnings[0].Detail != "signal: killed" {
				t.Errorf("warnings %+v, want one about %s", warnings, test.about)
			}
			last.die()
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "a second time") {
				t.Errorf("it ended twice, and supervising it with %v", err)
			}
			if !s.Restarted() {
				t.Error("it was not restarted")
			}
		})
	}
}

package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// startApplication starts the application of a real pod: a server that answers
// requests.
func (f *realSidecars) startApplication(p *realPod) (*process.Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding scaler's own program: %w", err)
	}
	ports, err := process.FreePorts(1)
	if err != nil {
		return nil, err
	}
	application, err := f.Place.Group.Start(process.Spec{
		Name: "echo-" + p.name, Path: program,
		Args: []string{dataplane.EchoCommand, "--listen", "127.0.0.1:" + strconv.Itoa(ports[0]), "--name", p.name},
		Log:  filepath.Join(f.Place.Logs, "echo-"+p.name+".log"),
	})
	if err != nil {
		return nil, fmt.Errorf("starting the application of pod %s: %w", p.id, err)
	}
	return application, nil
}

// observe has a sidecar report its token, its lives and their ends.
func (f *realSidecars) observe(p *pod, real *realPod, o *sidecar.Options) {
	if ask := o.Token; ask != nil {
		o.Token = func(ctx context.Context) (proxy.Token, error) {
			asked := time.Now()
			token, err := ask(ctx)
			var isFirst bool
			f.fleet.Pods.update(p.id, func(p *pod) { isFirst = err == nil && first(&p.times.Token, time.Now()) })
			if isFirst {
				real.starts.Token.Record(time.Since(asked))
			}
			return token, err
		}
	}
	o.Started = func(life sidecar.Life) {
		f.measure(real, life)
		f.fleet.Pods.update(p.id, func(p *pod) {
			first(&p.times.Dialed, life.At)
			first(&p.times.Requested, life.At)
		})
		f.tracker.FirstRequest(p.id, life.At)
		f.fleet.Event(record.RealSidecarStarted{Pod: p.id, Life: life.Number, PID: life.Process.PID(), Envoy: life.Envoy.PID()})
	}
	o.Crashed = func(crash sidecar.Crash) {
		name := real.envoyName()
		if o.Agent != "" {
			name = real.agentName()
		}
		f.Sampler.Ended(name, measure.OfProcess(crash.Process))
		f.crashed(real, crash.At)
		f.Say(fmt.Sprintf("the real sidecar of pod %s ended and is started again: %s", p.id, lastLine(crash.Err)))
		f.Warn(record.Warning{
			About: "sidecars.real", Reason: record.ReasonSidecarCrashed, Component: "the sidecar of pod " + p.id, Detail: fmt.Sprint(crash.Err),
			Values: map[string]float64{"times": 1},
		})
		f.fleet.Event(record.RealSidecarEnded{Pod: p.id, Error: fmt.Sprint(crash.Err)})
	}
}

// lastLine is the last line of the output of a program that ended.
func lastLine(err error) string {
	text := strings.TrimSpace(fmt.Sprint(err))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// measure has a life's processes sampled. It is called when they run and again
// when Envoy answers: one that is just becoming Envoy may not be readable.
func (f *realSidecars) measure(p *realPod, life sidecar.Life) {
	if f.InPods != nil {
		return // the kubelet is asked
	}
	// One that has ended meanwhile is not there to be read.
	_ = f.Sampler.Watch(p.envoyName(), measure.OfProcess(life.Envoy))
	if life.Process != life.Envoy {
		_ = f.Sampler.Watch(p.agentName(), measure.OfProcess(life.Process))
	}
}

// follow reads what an Envoy holds whenever it received something, until
// ctx is done. While nothing is touched it is not asked: that would be part of
// what it is measured to need.
func (f *realSidecars) follow(ctx context.Context, p *pod, real *realPod) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	var (
		life          int
		bytes         int64     // received as of the last dump
		changed       time.Time // when it was last seen to have received more
		dumped        time.Time
		refusing      time.Time // since when
		seen          int64
		settled       bool // what was last read lacks nothing that comes without more bytes
		readCompletes bool
	)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		current := real.current()
		if f.InPods != nil && current.Number == 0 {
			continue
		}
		if readCompletes && current.Number == life && refusing.IsZero() && f.Quiet() {
			continue
		}
		now := time.Now()
		total, err := real.sidecar.Received(ctx)
		if err != nil {
			continue // it does not run yet, or not now
		}
		if current.Number != life {
			life, bytes, seen, refusing, settled = current.Number, 0, 0, time.Time{}, false
			if f.InPods != nil && real.lives.Load() != int64(life) {
				f.began(p, real, current)
			}
			f.measure(real, current)
		}
		if total > seen {
			seen, changed = total, now
		}
		readCompletes = total == bytes && settled
		if readCompletes && refusing.IsZero() || now.Sub(dumped) < dumpEvery || total == 0 {
			continue
		}
		crashes := real.crashedSoFar()
		configuration, err := real.sidecar.Configuration(ctx)
		if err != nil {
			continue
		}
		at := changed
		if total == bytes {
			at = now // its certificate came another way, and what waited for it
		}
		bytes, dumped = total, now
		settled = !configuration.Warming && (f.Certified || !configuration.Certificate.IsZero())
		f.take(p, real, reading{configuration, changed, at, crashes})
		if len(configuration.Refused) == 0 {
			refusing = time.Time{}
			continue
		}
		if refusing.IsZero() {
			refusing = now
			f.fleet.Event(refusedEvent(p.id, configuration.Refused))
			f.Say(fmt.Sprintf("the Envoy of pod %s refused %s", p.id, configuration.Refused[0]))
			f.Warn(record.Warning{About: "sidecars.real", Reason: record.ReasonSidecarRefused, Component: p.id, Detail: configuration.Refused[0].String()})
		}
		if now.Sub(refusing) > refusalTimeout {
			f.fleet.Fail(fmt.Errorf("the Envoy of pod %s has refused its configuration for %.0f s: %s", p.id, now.Sub(refusing).Seconds(), configuration.Refused[0]))
			return
		}
	}
}

// current is the life of the sidecar that goes on, or has ended last.
func (p *realPod) current() sidecar.Life {
	if life := p.life.Load(); life != nil {
		return *life
	}
	return p.sidecar.Life()
}

// refusedEvent is the event of what a pod's Envoy refused.
func refusedEvent(pod string, refused []sidecar.Refusal) record.ConfigurationRefused {
	e := record.ConfigurationRefused{Pod: pod}
	for _, r := range refused {
		e.Refused = append(e.Refused, record.RefusedResource(r))
	}
	return e
}

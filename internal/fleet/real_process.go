package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// processPod is a pod of the mesh whose real sidecar, and an application, are processes of this machine.
type processPod struct{ realPod }

// newProcessPod makes it of a pod of the mesh. The caller holds Pods.mu.
func newProcessPod(of *pod) *processPod {
	p := &processPod{}
	p.enter(of, p)
	return p
}

func (p *processPod) start(ctx context.Context, object *corev1.Pod) {
	f := p.fleet
	p.expect()
	ctx, p.stop = context.WithCancel(ctx)
	delay := f.delay(p.order, false)
	f.reals.Go(func() {
		if delay > 0 && !task.Sleep(ctx, delay) {
			return
		}
		application, err := p.startApplication()
		if err != nil {
			f.Fail(err)
			return
		}
		defer func() { _ = application.Stop(context.WithoutCancel(ctx)) }() // stopping the group reports it, too
		if err := p.run(ctx, object); err != nil && ctx.Err() == nil {
			f.Fail(fmt.Errorf("running the real sidecar of pod %s: %w", p.id, err))
		}
	})
}

// startApplication starts the application of the pod: a server that answers
// requests.
func (p *processPod) startApplication() (*process.Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding scaler's own program: %w", err)
	}
	ports, err := process.FreePorts(1)
	if err != nil {
		return nil, err
	}
	application, err := p.real.Place.Group.Start(process.Spec{
		Name: "echo-" + p.name, Path: program,
		Args: []string{dataplane.EchoCommand, "--listen", "127.0.0.1:" + strconv.Itoa(ports[0]), "--name", p.name},
		Log:  filepath.Join(p.real.Place.Logs, "echo-"+p.name+".log"),
	})
	if err != nil {
		return nil, fmt.Errorf("starting the application of pod %s: %w", p.id, err)
	}
	return application, nil
}

// run runs the sidecar and follows what it holds until ctx ends.
func (p *processPod) run(ctx context.Context, object *corev1.Pod) error {
	s, err := p.real.Place.ForPod(ctx, object, p.observe)
	if err != nil {
		return err
	}
	defer p.startFollowing(ctx, s)()
	return s.Run(ctx)
}

// observe has the sidecar report its token, its lives and their ends.
func (p *processPod) observe(o *sidecar.Options) {
	if ask := o.Token; ask != nil {
		o.Token = func(ctx context.Context) (proxy.Token, error) {
			asked := time.Now()
			token, err := ask(ctx)
			var isFirst bool
			p.update(func() { isFirst = err == nil && setOnce(&p.times.Token, time.Now()) })
			if isFirst {
				p.starts.Token.Record(time.Since(asked))
			}
			return token, err
		}
	}
	o.Started = func(life sidecar.Life) {
		p.answered(life)
		p.began(life, record.RealSidecarStarted{PID: life.Process.PID(), Envoy: life.Envoy.PID()})
	}
	o.Crashed = func(crash sidecar.Crash) {
		name := p.envoyName()
		if o.Agent != "" {
			name = p.agentName()
		}
		p.real.Sampler.Ended(name, measure.OfProcess(crash.Process))
		p.crashed(crash.At, " and is started again: "+lastLine(crash.Err), fmt.Sprint(crash.Err))
	}
}

// lastLine returns the last line of the output of a program that ended.
func lastLine(err error) string {
	text := strings.TrimSpace(fmt.Sprint(err))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// envoyName and agentName are the components that the processes are sampled as.
func (p *processPod) envoyName() string { return "envoy " + p.name }
func (p *processPod) agentName() string { return "agent " + p.name }

func (p *processPod) life() sidecar.Life { return p.sidecar.Life() }

// answered has a life's processes sampled. It is called when they run and again
// when Envoy answers: one that is just becoming Envoy may not be readable.
func (p *processPod) answered(life sidecar.Life) {
	// One that has ended meanwhile is not there to be read.
	_ = p.real.Sampler.Watch(p.envoyName(), measure.OfProcess(life.Envoy))
	if life.Process != life.Envoy {
		_ = p.real.Sampler.Watch(p.agentName(), measure.OfProcess(life.Process))
	}
}

func (p *processPod) describe() RealSidecar {
	each := RealSidecar{Pod: p.id, Service: p.service, Envoy: p.envoyName(), Agent: p.agentName()}
	if p.sidecar != nil {
		each.Crashes = len(p.sidecar.Crashes())
	}
	return each
}

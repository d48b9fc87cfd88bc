package rollout

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/record"
)

// newRecord is the record as far as it is known before anything runs.
func (r *rolloutRun) newRecord() record.Run {
	t := r.spec.Topology.Defaults()
	knobs := r.spec.Knobs()
	return record.Run{
		APIVersion: record.APIVersion, Kind: record.Kind, Schema: record.Schema,
		Name:    r.spec.Name(),
		Started: time.Now().UTC(),
		Spec: record.Spec{
			Pods: t.Pods, Services: t.Services, Namespaces: t.Namespaces,
			Topology: t.Shape, FanOut: t.FanOut, Seed: t.Seed,
			Burst: r.spec.Burst, Mode: r.spec.preset(), XDS: r.spec.XDS,
			BaselineSeconds:        r.spec.Baseline.Seconds(),
			SettleSeconds:          r.spec.Settle.Seconds(),
			SteadySeconds:          r.spec.Steady.Seconds(),
			ConvergeTimeoutSeconds: r.spec.ConvergeTimeout.Seconds(),
			Repeat:                 r.spec.Repeat,
			StartDelay:             r.spec.StartDelay.String(),
			CertificateLifetime:    lifetimeText(r.spec.CertificateLifetime),
			Churn:                  r.spec.Churn.String(),
			Faults:                 texts(r.spec.Faults),
			RealSidecars:           r.spec.RealSidecars,
			CertificateStorm:       r.spec.CertificateStorm,
			Probes:                 r.spec.Probes,
		},
		Environment: record.Environment{
			CPUs:        runtime.NumCPU(),
			MemoryBytes: memoryBytes(),
			Kernel:      kernel(),
			Kubernetes:  component.Version(component.KubeAPIServer),
			Kwok:        component.Version(component.Kwok),
			Scaler:      Version(),
			Knobs:       record.Knobs(knobs),
		},
		Pods: &record.Pods{Requested: t.Pods},
	}
}

// describeControlPlane puts into the record which one runs and how.
func (r *rolloutRun) describeControlPlane() {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.adapter.Server.Describe()
	r.record.Environment.ControlPlane = record.ControlPlaneSource{
		Name: d.Name, Version: d.Version, Replicas: d.Replicas, GOMAXPROCS: d.MaxProcs, Settings: d.Settings, Limits: d.Limits,
		CPUs: r.placing.CPUs, MemoryLimitBytes: r.placing.MemoryBytes, MemoryLimitEnforced: r.placing.Enforced,
		Program: programDigest(r.programs, r.driver),
	}
}

// programDigest is that of a control plane's own program; "" of one that is none
// but scaler.
func programDigest(programs map[string]string, d controlplane.Driver) string {
	if len(d.Programs) == 0 {
		return ""
	}
	return digest(programs[d.Programs[0]])
}

// texts are things as they print.
func texts[T fmt.Stringer](things []T) []string {
	var all []string
	for _, thing := range things {
		all = append(all, thing.String())
	}
	return all
}

// warn puts a doubt beside the figure it touches.
func (r *rolloutRun) warn(w record.Warning) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Warnings = append(r.record.Warnings, record.NewWarning(w))
}

// event notes what happened in events.jsonl. A disk that is full ends the run.
func (r *rolloutRun) event(e record.Event) {
	if err := r.writer.Event(e); err != nil {
		r.fail(err)
	}
}

// save writes the record as far as it is known.
func (r *rolloutRun) save() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writer.Save(&r.record)
}

// finish writes the record for the last time: how the run ended is known now,
// and everything is stopped. It returns what the command is to report.
func (r *rolloutRun) finish(ctx context.Context, err error) (record.Run, error) {
	r.mu.Lock()
	r.record.Finished = new(time.Now().UTC())
	switch {
	case err == nil:
		r.record.Status = record.StatusCompleted
	case errors.Is(err, ErrUnconverged):
		r.record.Status = record.StatusUnconverged
	case errors.Is(err, context.Canceled):
		r.record.Status, r.record.Reason = record.StatusInterrupted, "interrupted by a signal"
	default:
		r.record.Status, r.record.Reason = record.StatusFailed, err.Error()
	}
	r.record.Dir = r.writer.Dir()
	r.mu.Unlock()
	return r.record, errors.Join(err, r.save(), r.writer.Close())
}

// Version is scaler's own, as the go command recorded it. A program that was
// built without one, as by go run, is told from others by its own digest.
var Version = sync.OnceValue(func() string {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && version == "(devel)" {
				version = s.Value
			}
		}
	}
	if version != "(devel)" {
		return version
	}
	if build := digest("/proc/self/exe"); build != "" {
		return "devel-" + build
	}
	return version
})

// digest tells builds of a program apart that say the same version: the first 12
// digits of its SHA-256; "" of one that cannot be read.
func digest(path string) string {
	program, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer program.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, program); err != nil {
		return ""
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:6])
}

func memoryBytes() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

func kernel() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(fmt.Sprint(err), "\n")
	return line
}

// lifetimeText is a lifetime as the record has it.
func lifetimeText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

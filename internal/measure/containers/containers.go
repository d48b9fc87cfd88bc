// Package containers measures the usage of the containers of real sidecars in an existing cluster, by the
// cAdvisor of its kubelets. How cAdvisor is read is left to package kubelet.
package containers

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure/kubelet"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// lastReading limits the wait for the readings of cAdvisor that follow the last phase. By default cAdvisor reads a container
// every 10 to 20 s. It misses the start of a container whose task containerd does not have within 3 s, and looks for such
// containers once a minute (globalHousekeepingInterval in its manager/manager.go).
const lastReading = 90 * time.Second

// Sidecars reads the usage of the containers of a run's real sidecars from the kubelets.
type Sidecars struct {
	watcher *kubelet.Watcher
	name    string // of the container in its pod
}

// NewSidecars returns Sidecars of no pod yet; nil where the user of the cluster may not read the kubelets, of which it
// warns.
func NewSidecars(ctx context.Context, cluster *existing.Cluster, s controlplane.InjectedSidecar, warn func(record.Warning)) (*Sidecars, error) {
	missing, err := cluster.MissingRights(ctx, existing.KubeletRights())
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		warn(record.Warning{
			About: "sidecars.real", Reason: record.ReasonNotSupported, Component: "context " + cluster.Context,
			Detail: "its user may not " + strings.Join(missing, ", ") + ", through which the kubelets are asked what containers use",
		})
		return nil, nil
	}
	return &Sidecars{watcher: kubelet.NewWatcher(cluster.Cadvisor), name: s.Container}, nil
}

// Run reads the kubelets until ctx ends.
func (s *Sidecars) Run(ctx context.Context) error { return s.watcher.Run(ctx) }

// Watch adds the sidecar of a pod that is on a node. s may be nil: nothing is read then.
func (s *Sidecars) Watch(pod *corev1.Pod) {
	if s != nil {
		s.watcher.Watch(kubelet.Container{Node: pod.Spec.NodeName, Namespace: pod.Namespace, Pod: pod.Name, Name: s.name})
	}
}

// Await waits for the readings that follow the end of the run's last phase, for a limited time. What they do not cover
// is missing from the record, which says so. s may be nil.
func (s *Sidecars) Await(ctx context.Context, end time.Time, say func(string)) {
	if s == nil {
		return
	}
	say("waiting for the kubelets to read containers once more")
	limited, cancel := context.WithTimeoutCause(ctx, lastReading, errors.New("the time limit passed"))
	defer cancel()
	if err := s.watcher.Await(limited, end); err != nil {
		say(err.Error())
	}
}

// RealPods describes a run's pods on real nodes of a cluster, with the sidecars that it injects. The usage of their containers is
// read into s, which may be nil.
func RealPods(cluster *existing.Cluster, injected controlplane.InjectedSidecar, s *Sidecars) *fleet.RealPods {
	return &fleet.RealPods{
		Container: injected.Container, Cluster: injected.Cluster, Certificate: injected.Certificate, Seen: s.Watch,
		Admin: func(ctx context.Context, namespace, pod string) (fleet.Admin, error) {
			one, err := cluster.ForwardBeforeStart(ctx, namespace, pod, injected.AdminPort)
			if err != nil {
				return fleet.Admin{}, err
			}
			return fleet.Admin{Port: one.Port(injected.AdminPort), Done: one.Done(), Close: one.Close}, nil
		},
	}
}

// Measure adds the real sidecars to the record, with the usage of their containers, each and all together, where that is
// known. s may be nil.
func (s *Sidecars) Measure(sidecars []fleet.RealSidecar, windows []phases.Window, all *record.RealSidecars, warn func(record.Warning)) {
	sums, unknown := map[record.PhaseName]*kubelet.Usage{}, map[record.PhaseName]bool{}
	for _, one := range sidecars {
		each := record.RealSidecar{Pod: one.Pod, Service: one.Service, Node: one.Node, Crashes: one.Crashes}
		all.Source = one.Image
		namespace, name, _ := strings.Cut(one.Pod, "/")
		for _, w := range windows {
			if s == nil || all.At(w.Name) == nil {
				continue
			}
			of := kubelet.Container{Node: one.Node, Namespace: namespace, Pod: name, Name: s.name}
			usage, err := s.watcher.Figures(of, w.Begin, w.End)
			if err != nil {
				unknown[w.Name] = true
				warn(record.Warning{About: "sidecars.real", Reason: record.ReasonUsageUnknown, Phase: w.Name, Component: of.String(), Detail: err.Error()})
				continue
			}
			if usage == (kubelet.Usage{}) {
				continue // it was started later
			}
			if each.Container == nil {
				each.Container = &record.ByPhase[*record.ContainerUsage]{}
			}
			*each.Container.At(w.Name) = usageOf(usage, w)
			if sums[w.Name] == nil {
				sums[w.Name] = &kubelet.Usage{MemoryKnown: true}
			}
			sums[w.Name].Add(usage)
		}
		all.Each = append(all.Each, each)
	}
	for _, w := range windows {
		if sum := sums[w.Name]; sum != nil && !unknown[w.Name] {
			*all.At(w.Name) = &usageOf(*sum, w).Usage
		}
	}
}

// usageOf returns the usage of containers in a window as the record has it.
func usageOf(u kubelet.Usage, w phases.Window) *record.ContainerUsage {
	level := func(m kubelet.Memory) *record.Level {
		if !u.MemoryKnown {
			return nil
		}
		return &record.Level{Mean: &m.Mean, Peak: &m.Peak, End: &m.End}
	}
	return &record.ContainerUsage{
		Usage: record.Usage{
			Cores: &record.Level{Mean: new(u.CPUSeconds / w.End.Sub(w.Begin).Seconds())}, CPUSeconds: &u.CPUSeconds,
			MemoryBytes: level(u.Resident), WorkingSetBytes: level(u.WorkingSet), Restarts: &u.Restarts,
		},
		CPUSecondsLow: &u.CPUSecondsLow, CPUSecondsHigh: &u.CPUSecondsHigh, Readings: u.Readings,
	}
}

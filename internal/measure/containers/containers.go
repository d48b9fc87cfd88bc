// Package containers measures what containers of the control plane use in a cluster that is there already, by the
// cAdvisor of its kubelets, and records it together with what their own metrics say. How cAdvisor is read is
// left to package kubelet.
package containers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/measure/kubelet"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// lastReading is how long the end of a run waits for the readings of cAdvisor that follow its last phase. cAdvisor reads
// a container every 20 s at least, unless its kubelet is set otherwise.
const lastReading = 30 * time.Second

// Containers are those of a run whose usage is read from the kubelets.
type Containers struct {
	watcher *kubelet.Watcher
	// controlPlane are the control plane's, and sampled the names under which their own metrics are read.
	controlPlane []kubelet.Container
	sampled      []string
	sidecar      string // name of the container of sidecars
}

// Find finds the containers of the control plane that was found in a cluster; nil where it has none, or where the kubelets may not be read,
// of which it warns. The own metrics of a control plane of one pod
// are read under the name of its driver, those of several under the names of the pods.
func Find(ctx context.Context, found *attach.Found, client kubernetes.Interface, driver controlplane.Driver, warn func(record.Warning)) (*Containers, error) {
	i := found.Installation
	if len(i.Pods) == 0 {
		return nil, nil
	}
	missing, err := found.Cluster.MissingRights(ctx, existing.KubeletRights())
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		warn(record.Warning{
			About: "containers", Reason: record.ReasonNotSupported, Component: "context " + found.Cluster.Context,
			Detail: "its user may not " + strings.Join(missing, ", ") + ", through which the kubelets are asked what containers use",
		})
		return nil, nil
	}
	c := &Containers{watcher: kubelet.NewWatcher(found.Cluster.Cadvisor)}
	if s := driver.Installed.Sidecar; s != nil {
		c.sidecar = s.Container
	}
	for _, name := range i.Pods {
		pod, err := client.CoreV1().Pods(i.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("finding the node of pod %s/%s: %w", i.Namespace, name, err)
		}
		one := kubelet.Container{Node: pod.Spec.NodeName, Namespace: i.Namespace, Pod: name, Name: i.Container}
		c.watcher.Watch(one)
		if len(i.Pods) == 1 {
			name = driver.Name
		}
		c.controlPlane, c.sampled = append(c.controlPlane, one), append(c.sampled, name)
	}
	return c, nil
}

// Run reads the kubelets until ctx ends.
func (c *Containers) Run(ctx context.Context) error { return c.watcher.Run(ctx) }

// Options are what figures are computed with. All fields are needed.
type Options struct {
	Windows []phases.Window // of the run, at least one
	// Await has Measure wait for the readings that follow the last window. A run that was interrupted does not: what
	// its readings do not cover is missing from the record, which says so.
	Await   bool
	Sampler *measure.Sampler     // of the programs' own metrics
	Warn    func(record.Warning) // puts a doubt into the record
	Say     func(string)         // shows progress
}

// Measure computes what the containers used in each phase.
func (c *Containers) Measure(ctx context.Context, o Options) *record.Containers {
	begin, end := o.Windows[0].Begin, o.Windows[len(o.Windows)-1].End
	if o.Await {
		o.Say("waiting for the kubelets to read containers once more")
		limited, cancel := context.WithTimeoutCause(ctx, lastReading, errors.New("the time limit passed"))
		defer cancel()
		if err := c.watcher.Await(limited, end); err != nil {
			o.Say(err.Error()) // the figures that lack it say so in the record
		}
	}
	document := &record.Containers{Each: map[string]*record.Container{}}
	for i, of := range c.controlPlane {
		one := &record.Container{Name: of.Name, Node: of.Node}
		for _, w := range o.Windows {
			slot := one.Usage.At(w.Name)
			if slot == nil {
				continue
			}
			usage, err := c.watcher.Figures(of, w.Begin, w.End)
			if err != nil {
				o.Warn(record.Warning{About: "containers." + string(w.Name), Reason: record.ReasonUsageUnknown, Phase: w.Name, Component: of.String(), Detail: err.Error()})
				continue
			}
			*slot = usageOf(usage, w)
		}
		compared, err := c.compare(of, c.sampled[i], o.Sampler, begin, end)
		if err != nil {
			o.Warn(record.Warning{About: "containers", Reason: record.ReasonNotMeasured, Component: of.String(), Detail: err.Error()})
		}
		one.Compared = compared
		document.Each[of.Pod] = one
	}
	for _, w := range o.Windows {
		if slot := document.ControlPlane.At(w.Name); slot != nil {
			*slot = c.together(w)
		}
	}
	return document
}

// together is what the control plane's containers used in a window; nil where it is not known of all.
func (c *Containers) together(w phases.Window) *record.ContainerUsage {
	sum := kubelet.Usage{MemoryKnown: true}
	for _, one := range c.controlPlane {
		usage, err := c.watcher.Figures(one, w.Begin, w.End)
		if err != nil {
			return nil
		}
		sum.Add(usage)
	}
	return usageOf(sum, w)
}

// usageOf is what containers used in a window, as records have it.
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

// compare compares cAdvisor's count of a container with that of its own metrics, over the time from the first reading
// of cAdvisor in a window to the last; nil where it has no two.
func (c *Containers) compare(of kubelet.Container, sampled string, sampler *measure.Sampler, from, to time.Time) (*record.ContainerCompared, error) {
	first, last, ok := c.watcher.Span(of, from, to)
	if !ok {
		return nil, nil
	}
	theirs, err := c.watcher.Figures(of, first, last)
	if err != nil {
		return nil, err
	}
	own, err := sampler.Figures(sampled, first, last)
	if err != nil {
		return nil, err
	}
	return &record.ContainerCompared{
		Seconds: last.Sub(first).Seconds(), CPUSeconds: theirs.CPUSeconds, OwnCPUSeconds: own.CPUSeconds,
		MemoryBytes: theirs.Resident.Mean, OwnMemoryBytes: own.MemoryMean,
	}, nil
}

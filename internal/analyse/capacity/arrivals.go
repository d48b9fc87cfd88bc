package capacity

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/analyse/pushes"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// longest is the longest duration of a rollout, and so of the debounce, that is accepted.
const longest = 30 * 24 * time.Hour

// debounceOf returns the debounce settings of a run's control plane.
func debounceOf(r *record.Run) pushes.Debounce {
	l := r.Environment.ControlPlane.Limits
	if l == nil {
		return pushes.Debounce{}
	}
	// A record may come from elsewhere and contain any number.
	within := func(seconds float64) time.Duration {
		return time.Duration(min(max(seconds, 0), longest.Seconds()) * float64(time.Second))
	}
	return pushes.Debounce{After: within(l.DebounceSeconds), Max: within(l.DebounceMaxSeconds)}
}

// layout returns the topology of a run's mesh with other numbers of pods and services. It
// determines what each proxy is sent only in a mesh of sidecars without further parts;
// for any other it returns an error.
func layout(r *record.Run, pods, services int) (topology.Mesh, error) {
	if r.Mesh != nil || r.Parts != (scenario.Parts{}) || r.Dataplane() != record.SidecarDataplane {
		return topology.Mesh{}, fmt.Errorf("%s has more than sidecars and uniform services", r.Name)
	}
	asked := r.Scenario.Mesh
	spec := topology.Spec{Pods: pods, Services: services, Namespaces: r.NamespaceCount(), Shape: asked.Topology, FanOut: asked.FanOut, Seed: asked.Seed}
	if services != r.ServiceCount() {
		spec.Namespaces = 0
	}
	if err := spec.Validate(); err != nil {
		return topology.Mesh{}, fmt.Errorf("reading the scenario of %s: %w", r.Name, err)
	}
	return topology.Build(spec), nil
}

// holders returns, for each service, the services whose sidecars hold it: its callers if
// scope is declared; nil, for all, otherwise.
func holders(r *record.Run, mesh topology.Mesh) [][]int {
	if r.Environment.Knobs.Scope != scenario.ScopeDeclared {
		return nil
	}
	all := make([][]int, len(mesh.Services))
	for caller, service := range mesh.Services {
		for _, called := range service.Calls {
			all[called] = append(all[called], caller)
		}
	}
	return all
}

// rolloutOf returns the rollout of a run, with the times at which its pods arrived.
func rolloutOf(r *record.Run) (pushes.Rollout, error) {
	mesh, err := layout(r, r.PodCount(), r.ServiceCount())
	if err != nil {
		return pushes.Rollout{}, err
	}
	index := map[string]int{}
	for i, service := range mesh.Services {
		index[service.Namespace+"/"+service.Object()] = i
	}
	seen, end, err := starts(r)
	if err != nil {
		return pushes.Rollout{}, err
	}
	out := pushes.Rollout{Holders: holders(r, mesh), End: end}
	for _, s := range seen {
		service, known := index[s.workload]
		if !known {
			return pushes.Rollout{}, fmt.Errorf("reading the events of %s: %s is no workload of the run", r.Name, s.workload)
		}
		s.Service = service
		out.Pods = append(out.Pods, s.Pod)
	}
	return out, nil
}

// start is the arrival of a pod, with its workload.
type start struct {
	pushes.Pod
	workload string // namespace/name
}

// starts returns the pods of a run's rollout, in the order in which they got an address,
// and the end of the rollout, 0 if that is not known. All times are those of the modelled
// machine.
func starts(r *record.Run) (seen []start, end time.Duration, err error) {
	all, err := r.Startups()
	if err != nil {
		return nil, 0, err
	}
	all = slices.DeleteFunc(all, func(s record.PodStartup) bool {
		return s.Times.IP.IsZero() || s.Times.Requested.IsZero() || s.Times.Ready.IsZero()
	})
	if len(all) < r.PodCount() {
		return nil, 0, fmt.Errorf("reading the events of %s: %d of %d pods have all times of their start", r.Name, len(all), r.PodCount())
	}
	slices.SortStableFunc(all, func(a, b record.PodStartup) int { return a.Times.IP.Compare(b.Times.IP) })
	all = all[:r.PodCount()] // later pods are those of probes and churn
	since := func(at time.Time) time.Duration {
		return time.Duration(float64(at.Sub(all[0].Times.IP)) / r.Slowdown())
	}
	for _, s := range all {
		if s.Times.Ready.Sub(all[0].Times.IP) > longest || s.Times.Requested.Sub(all[0].Times.IP) > longest {
			return nil, 0, fmt.Errorf("reading the events of %s: %s started longer than %s after the first pod", r.Name, s.Pod, longest)
		}
		seen = append(seen, start{
			pushes.Pod{Address: since(s.Times.IP), Connected: since(s.Times.Requested), Ready: since(s.Times.Ready)},
			workloadOf(s.Pod),
		})
	}
	if rollout := r.Phase(record.PhaseRollout); rollout != nil && rollout.End != nil {
		end = since(*rollout.End)
	}
	return seen, end, nil
}

// workloadOf returns namespace/name of the Deployment of a pod. The pod's name ends in
// the hash of its ReplicaSet and its own suffix.
func workloadOf(pod string) string {
	for range 2 {
		if at := strings.LastIndexByte(pod, '-'); at >= 0 {
			pod = pod[:at]
		}
	}
	return pod
}

// planned returns the rollout of the target. Its pods arrive as those of the largest run
// did: with bursts, each has the delays of a pod at the same place of a burst; without,
// they arrive at the pace of that run.
func (s *sample) planned(t target) (pushes.Rollout, error) {
	like := s.runs[len(s.runs)-1]
	mesh, err := layout(like, int(t.pods), t.services)
	if err != nil {
		return pushes.Rollout{}, err
	}
	seen, end, err := starts(like)
	if err != nil {
		return pushes.Rollout{}, err
	}
	size, interval := like.Scenario.Load.Arrival.Bursts()
	out := pushes.Rollout{Holders: holders(like, mesh)}
	for i, service := range mesh.Services {
		for range service.Pods {
			out.Pods = append(out.Pods, arrival(seen, len(out.Pods), t.pods, size, interval))
			out.Pods[len(out.Pods)-1].Service = i
		}
	}
	if end > 0 {
		var last, lastSeen time.Duration
		// The planned rollout ends as long after its last pod as that run did.
		for _, s := range seen {
			lastSeen = max(lastSeen, s.Ready)
		}
		for _, p := range out.Pods {
			last = max(last, p.Ready)
		}
		out.End = last + end - lastSeen
	}
	return out, nil
}

// arrival returns the arrival of the pod at a place in a rollout of this many pods,
// derived from the observed arrivals of fewer pods.
func arrival(seen []start, place int, pods float64, size int, interval time.Duration) pushes.Pod {
	var from pushes.Pod
	var by time.Duration
	if size > 0 && size <= len(seen) {
		at := place % (len(seen) / size * size)
		from, by = seen[at].Pod, time.Duration(place/size-at/size)*interval
	} else {
		stretch := pods / float64(len(seen))
		from = seen[min(len(seen)-1, int(float64(place)/stretch))].Pod
		by = time.Duration(float64(from.Address) * (stretch - 1))
	}
	from.Address, from.Connected, from.Ready = from.Address+by, from.Connected+by, from.Ready+by
	return from
}

package rollout

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/cluster"
	"scaler.mesh/scaler/pkg/controlplane/istio"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/topology"
	"scaler.mesh/scaler/pkg/xdsprobe/wiretap"
)

// fidelityRun lays a simulated sidecar beside a real one: two pods of one
// workload, of which one has its sidecar simulated and the other one has a real
// agent with a real Envoy, told what the kubelet would tell it in that pod.
type fidelityRun struct {
	// fixed at the start
	spec     FidelitySpec
	say      func(string)
	mesh     topology.Mesh
	observed int // index of the service whose pods are looked at

	// made by the steps, in this order
	programs map[string]string
	keys     *keyPool
	group    *process.Group // of everything that the run starts
	cluster  *cluster.Cluster
	apiServer
	istiod *istio.ControlPlane
	tap    *wiretap.Wiretap
	pods   [2]*corev1.Pod // by side
	nodes  [2]string      // node ids, by side, once started

	result record.Fidelity
	times  [][2][]wiretap.Times // of the starts, by case of result and side
}

// The sides that are laid beside each other.
const (
	realSide = iota
	simulated
)

var sideNames = [2]string{"real", "simulated"}

const (
	// fidelityQuiet is how long nothing must have been said for a change to
	// have come through: longer than istiod's debounce of 100 ms.
	fidelityQuiet = 400 * time.Millisecond
	// fidelityPatience bounds each wait.
	fidelityPatience = time.Minute
	// fidelitySettled is how long nothing must have been said for the mesh to
	// have come to rest.
	fidelitySettled = time.Second
)

// Fidelity compares a simulated sidecar with a real one on istiod, for each case
// asked for. say is told how it gets on; nil = nobody. With an error it returns, all
// the same, what it has found of every case that was begun.
func Fidelity(ctx context.Context, spec FidelitySpec, say func(string)) (record.Fidelity, error) {
	if err := spec.Validate(); err != nil {
		return record.Fidelity{}, err
	}
	if say == nil {
		say = func(string) {}
	}
	r := &fidelityRun{spec: spec, say: say, mesh: topology.Build(fidelityMesh)}
	r.observed = mostConnected(r.mesh)
	r.result = record.Fidelity{
		APIVersion: record.APIVersion, Kind: record.FidelityKind, Schema: record.Schema,
		Machine: thisMachine(), Scaler: Version(),
	}
	err := r.prepare(ctx)
	if err != nil {
		return r.result, err
	}
	steps := []step{
		{"starting the cluster", r.startCluster},
		{"starting istiod", r.startIstiod},
		{"listening between sidecars and istiod", r.listen},
		{"making the mesh", r.makeMesh},
	}
	for _, name := range spec.Cases {
		i := slices.IndexFunc(fidelityCases, func(c fidelityCase) bool { return c.name == name })
		steps = append(steps, step{"comparing with knobs " + name, func(ctx context.Context) (undo, error) {
			return nil, r.compare(ctx, fidelityCases[i])
		}})
	}
	began := time.Now()
	r.result.Made = began.UTC()
	err = runSteps(ctx, steps)
	r.judgeTimes()
	r.result.Status = record.StatusCompleted
	if err != nil {
		r.result.Status, r.result.Reason = record.StatusFailed, err.Error()
		if ctx.Err() != nil {
			r.result.Status = record.StatusInterrupted
		}
	}
	r.result.Seconds = time.Since(began).Seconds()
	return r.result, err
}

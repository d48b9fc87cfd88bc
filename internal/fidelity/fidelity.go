// Package fidelity implements `scaler calibrate --fidelity`: it compares a simulated
// sidecar with a real one, Istio's agent with an Envoy, on the same istiod and through
// the same changes; or a simulated ztunnel with a real one.
package fidelity

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/istio"
	"scaler.mesh/scaler/internal/fidelity/wiretap"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/ztunnel/real"
	"scaler.mesh/scaler/pkg/record"
)

// run compares a simulated sidecar with a real one, as two pods of one workload. One has
// a simulated sidecar, and the other a real agent with a real Envoy, with everything that
// the kubelet would give it in that pod. Or it compares a simulated ztunnel with a real
// one, as two pods of one node.
type run struct {
	// fixed at the start
	spec     Spec
	what     *subject
	driver   controlplane.Driver
	log      func(string)
	mesh     topology.Mesh
	observed int // index of the service whose pods are looked at

	// made by the steps, in this order
	programs map[string]string
	place    *real.Place // of the real ztunnel; nil without
	keys     *svid.KeyPool
	group    *process.Group // of everything that the run starts
	env      place.Environment
	place.Clients
	istiod *istio.ControlPlane
	tap    *wiretap.Wiretap
	inside string         // address of the tap in the place
	pods   [2]*corev1.Pod // by side
	nodes  [2]string      // node ids, by side, once started

	result record.Fidelity
	times  [][2][]wiretap.Times // of the starts, by case of result and side
}

// The sides that are compared.
const (
	realSide = iota
	simulated
)

var sideNames = [2]string{"real", "simulated"}

const (
	// quietTime is the time without a message after which a change counts as processed:
	// longer than istiod's debounce of 100 ms.
	quietTime = 400 * time.Millisecond
	// waitTimeout bounds each wait.
	waitTimeout = time.Minute
	// settledTime is the time without a message after which the mesh counts as settled.
	settledTime = time.Second
)

// Run compares a simulated proxy with a real one on istiod, for each case. log receives a
// line for each step; nil = nowhere. With an error it also returns the results of every
// case that was begun.
func Run(ctx context.Context, spec Spec, log func(string)) (record.Fidelity, error) {
	if err := spec.Validate(); err != nil {
		return record.Fidelity{}, err
	}
	if log == nil {
		log = func(string) {}
	}
	r := &run{spec: spec, what: spec.subject(), log: log, mesh: topology.Build(meshSpec)}
	r.observed = mostConnected(r.mesh)
	r.result = record.Fidelity{
		APIVersion: record.APIVersion, Kind: record.FidelityKind, Schema: record.Schema,
		Machine: place.Machine(), Scaler: component.ScalerVersion(),
	}
	err := r.prepare(ctx)
	if err != nil {
		return r.result, err
	}
	all := []steps.Step{
		{Name: "making a network namespace", Do: r.makePlace},
		{Name: "starting the cluster", Do: r.startCluster},
		{Name: "starting istiod", Do: r.startIstiod},
		{Name: "deleting the comparison's objects", Do: func(context.Context) (steps.Undo, error) {
			return place.Deletion{Env: r.env, Run: runName, Say: r.log}.Undo, nil
		}, Reserve: place.DeletionTime},
		{Name: "listening between proxies and istiod", Do: r.listen},
		{Name: "making the mesh", Do: r.makeMesh},
	}
	for _, name := range spec.Cases {
		i := slices.IndexFunc(r.what.cases, func(c knobCase) bool { return c.name == name })
		all = append(all, steps.Step{Name: "comparing with knobs " + name, Do: func(ctx context.Context) (steps.Undo, error) {
			return nil, r.compare(ctx, r.what.cases[i])
		}})
	}
	began := time.Now()
	r.result.Made = began.UTC()
	err = steps.Run(ctx, all)
	judgeTimes(&r.result, r.times, spec.Starts, r.what.ownWork)
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

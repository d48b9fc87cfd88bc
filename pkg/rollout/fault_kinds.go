package rollout

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"scaler.mesh/scaler/pkg/cluster"
	"scaler.mesh/scaler/pkg/recorder"
)

// endControlPlane ends the control plane, asking it first or not, and returns
// when it was started again and serves: what supervises it sees to that.
func (r *rolloutRun) endControlPlane(ctx context.Context, ask bool) error {
	r.asked.Store(true)
	if p := r.adapter.Program.Process(); !ask {
		p.Kill()
	} else if err := p.Stop(ctx); err != nil {
		return err
	}
	select {
	case <-r.again:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// resetStreams cuts the streams of a share of the sidecars, one at least.
func (r *rolloutRun) resetStreams(share float64) error {
	f := r.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	var connected []string
	for _, id := range slices.Sorted(maps.Keys(f.pods)) {
		if p := f.pods[id]; !p.gone && p.line.answered {
			connected = append(connected, id)
		}
	}
	if len(connected) == 0 {
		return errors.New("no sidecar is connected")
	}
	random := rand.New(rand.NewPCG(r.spec.Topology.Seed, uint64(f.apart.number)))
	random.Shuffle(len(connected), func(i, j int) { connected[i], connected[j] = connected[j], connected[i] })
	now := time.Now()
	for _, id := range connected[:int(math.Ceil(share*float64(len(connected))))] {
		f.lost(f.pods[id], now)
		f.pods[id].sidecar.Reset()
	}
	return nil
}

// takeAPIServer has the API server gone for a while.
func (r *rolloutRun) takeAPIServer(ctx context.Context, length time.Duration) error {
	if err := r.cluster.Absent(ctx, cluster.APIServer, length); err != nil {
		return err
	}
	for _, c := range r.cluster.Components() {
		if c.Name == cluster.APIServer {
			return r.sampler.Watch(c.Name, recorder.OfProcess(c.Process))
		}
	}
	return nil
}

// renew has convergence wait until every pod that is there now was replaced.
func (f *fleet) renew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apart.renewed = f.apart.number
}

// awaitComplete returns once so many sidecars are complete.
func (f *fleet) awaitComplete(ctx context.Context, sidecars int) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	complete := func() (n int) {
		for _, t := range f.trackers() {
			n += t.Counts().Complete
		}
		return n
	}
	for complete() < sidecars {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

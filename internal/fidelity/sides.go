package fidelity

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/fidelity/wiretap"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// tappedProxy is a proxy that runs behind the wiretap.
type tappedProxy struct {
	node   string // its node id
	before int    // streams that node had opened before
	// certificates counts the certificate requests that were compared already, or made
	// before.
	certificates int
	stop         func(context.Context) error // ends it and returns when it has ended

	ended   <-chan struct{} // closed when it has ended of its own accord
	failure func() error    // why; to be asked when ended is closed

	// held returns the resources that it reports to hold, each with the part of its
	// content that convergence needs.
	held func(context.Context) (map[wiretap.Key]string, error)
}

// start starts a sidecar of either side anew.
func (r *run) start(ctx context.Context, side int) (*tappedProxy, error) {
	if side == simulated {
		return r.startSimulated(ctx)
	}
	return r.what.startReal(r, ctx)
}

// startSimulated starts a simulated sidecar as a rollout does.
func (r *run) startSimulated(ctx context.Context) (*tappedProxy, error) {
	pod := r.pods[simulated]
	identity, err := r.istiod.Spec(pod)
	if err != nil {
		return nil, err
	}
	options := controlplane.ProxyOptions{XDS: string(xdsprobe.Delta), Address: r.tap.Address()}
	if streams := r.tap.Streams(r.nodes[realSide]); len(streams) > 0 && r.what == &sidecars {
		// The agent adds this host's addresses to those of the pod.
		if all, ok := streams[0].Node.Metadata["INSTANCE_IPS"].(string); ok {
			_, others, _ := strings.Cut(all, ",")
			options.Metadata = map[string]any{"INSTANCE_IPS": strings.TrimSuffix(pod.Status.PodIP+","+others, ",")}
		}
	}
	options.Apply(&identity)
	store, err := r.driver.NewStore()
	if err != nil {
		return nil, err
	}
	s, err := r.driver.Proxy.New(identity, controlplane.ProxyServices{
		Observer: failureLog{r.log}, Store: store, Keys: r.keys.Key, Tokens: authority.Tokens(r.Client),
	})
	if err != nil {
		return nil, err
	}
	return r.launch(ctx, identity.NodeID, s.Run, func(context.Context) (map[wiretap.Key]string, error) {
		held := map[wiretap.Key]string{}
		for _, one := range s.Held() {
			held[wiretap.Key{Type: one.Type.String(), Name: one.Name}] = contentText(one.Key, one.Content)
		}
		return held, nil
	}), nil
}

// launch runs a proxy until it is stopped.
func (r *run) launch(ctx context.Context, node string, run func(context.Context) error, held func(context.Context) (map[wiretap.Key]string, error)) *tappedProxy {
	before := len(r.tap.Streams(node)) // it may open one at once
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	var failed error
	go func() { failed = run(life); close(ended) }()
	return &tappedProxy{
		node: node, before: before, held: held,
		stop:  func(context.Context) error { end(); <-ended; return failed },
		ended: ended, failure: func() error { return failed },
	}
}

// startAgent starts pilot-agent with an Envoy, as the sidecar of the pod.
func (r *run) startAgent(ctx context.Context) (*tappedProxy, error) {
	pod := r.pods[realSide]
	identity, err := r.istiod.Spec(pod)
	if err != nil {
		return nil, err
	}
	r.nodes[realSide] = identity.NodeID
	place := controlplane.RealSidecars{
		Adapter: r.istiod.Parts(), Programs: r.programs, Group: r.group,
		// In the group's folder, where `scaler cleanup` finds it, because it contains
		// tokens.
		Dir: filepath.Join(r.group.Dir(), "sidecars"), Logs: r.logDir(), Discovery: r.tap.Address(), Concurrency: 1,
	}
	s, err := place.ForPod(ctx, pod, nil)
	if err != nil {
		return nil, err
	}
	return r.launch(ctx, identity.NodeID, s.Run, func(ctx context.Context) (map[wiretap.Key]string, error) {
		configuration, err := s.Configuration(ctx)
		if err != nil {
			return nil, err
		}
		if len(configuration.Refused) > 0 {
			return nil, fmt.Errorf("envoy refused %s", configuration.Refused[0])
		}
		held := map[wiretap.Key]string{}
		for _, one := range configuration.Held {
			held[wiretap.Key{Type: one.Type.String(), Name: one.Name}] = contentText(one.Key, one.Content)
		}
		return held, nil
	}), nil
}

// awaitQuiet returns when no stream had a message for this time, since the call or the
// last message.
func (r *run) awaitQuiet(ctx context.Context, length time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	timer := time.NewTimer(length)
	defer timer.Stop()
	for {
		changed := r.tap.Changed()
		select {
		case <-timer.C:
			return nil
		case <-changed:
			timer.Reset(length)
		case <-ctx.Done():
			return fmt.Errorf("waiting for the proxies to come to rest: %w", context.Cause(ctx))
		}
	}
}

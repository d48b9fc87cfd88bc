package rollout

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// start starts the sidecar of a pod. The caller holds mu.
func (f *fleet) start(ctx context.Context, p *pod, object *corev1.Pod) {
	identity, err := f.adapter.Identities.Sidecar(object)
	if err != nil {
		f.fail(fmt.Errorf("simulating a sidecar: %w", err))
		return
	}
	identity.CertificateLifetime = f.lifetime
	authority, err := f.adapter.Identities.Issuer(identity)
	if err != nil {
		f.fail(fmt.Errorf("simulating the sidecar of pod %s: %w", p.id, err))
		return
	}
	f.tracker.Add(p.id, f.scopes[object.Labels[kwok.ServiceLabel]])
	ctx, p.stop = context.WithCancel(ctx)
	p.sidecar = xdsprobe.New(probeConfig(identity, f.variant, tokensOf(f.adapter, object), authority, f.keys), f.probes, f)
	delay := f.delay.Of(f.seed, p.order)
	f.sidecars.Go(func() {
		defer authority.Close()
		if delay > 0 && until(ctx, time.Now().Add(delay)) != nil {
			return
		}
		if err := p.sidecar.Run(ctx); err != nil && ctx.Err() == nil {
			f.fail(fmt.Errorf("running the sidecar of pod %s: %w", p.id, err))
		}
	})
}

// probeConfig is what a simulated sidecar is told.
func probeConfig(s controlplane.Sidecar, variant xdsprobe.Variant, tokens proxy.TokenSource, authority controlplane.Issuer, keys *keyPool) xdsprobe.Config {
	return xdsprobe.Config{
		ID:          s.ID,
		Address:     s.Address,
		ServerName:  s.ServerName,
		RootPEM:     s.RootPEM,
		Variant:     variant,
		NodeID:      s.NodeID,
		NodeCluster: s.NodeCluster,
		Metadata:    s.Metadata,
		Build:       s.Build,
		Headers:     s.Headers,
		Keepalive:   s.Keepalive,
		Drain:       s.Drain,
		Token:       tokens,
		Issuer:      issuer{authority},
		Keys:        keys.Key,
		Identity:    s.Identity,
	}
}

// tokens requests the tokens of one pod.
type tokens struct {
	adapter *controlplane.ControlPlane
	pod     *corev1.Pod
}

// tokensOf keeps of the pod only what a token is requested for: thousands are
// simulated, and an injected pod is large.
func tokensOf(adapter *controlplane.ControlPlane, pod *corev1.Pod) tokens {
	return tokens{adapter, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Spec:       corev1.PodSpec{ServiceAccountName: pod.Spec.ServiceAccountName},
	}}
}

func (t tokens) Token(ctx context.Context) (proxy.Token, error) {
	token, err := t.adapter.Identities.Token(ctx, t.pod)
	return proxy.Token(token), err
}

// issuer has one pod's certificates signed.
type issuer struct{ authority controlplane.Issuer }

func (i issuer) Issue(ctx context.Context, token string, csrPEM []byte) (proxy.Issued, error) {
	issued, err := i.authority.Issue(ctx, token, csrPEM)
	return proxy.Issued(issued), err
}

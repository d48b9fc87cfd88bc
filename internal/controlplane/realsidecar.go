package controlplane

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/podnet"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// RealSidecars makes the real sidecars of one experiment: it knows where they run, and with what.
type RealSidecars struct {
	Adapter     *ControlPlane
	Programs    map[string]string  // of Dataplane.SidecarPrograms
	Proxy       string             // which of Programs the proxies are; "" = Envoy
	Group       *process.Group     // that they join
	Dir         string             // takes a folder for each
	Logs        string             // takes a log for each
	Discovery   string             // host:port in place of the control plane's own; "" = that
	Concurrency int                // worker threads of each Envoy; 0 = the control plane's default
	Lifetime    time.Duration      // of the certificates that agents ask for; 0 = 24 h
	Expiry      *CertificateExpiry // of certificates that nobody renews; nil = nobody asks
}

// CertificateExpiry is the moment at which the first of some certificates expires; the zero value has none.
type CertificateExpiry struct {
	mu sync.Mutex
	at time.Time
}

func (e *CertificateExpiry) note(at time.Time) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at.IsZero() || at.Before(e.at) {
		e.at = at
	}
}

// Warning warns of certificates that ended before the run did; nil if all lasted.
func (e *CertificateExpiry) Warning(about string, end time.Time) *record.Warning {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at.IsZero() || !e.at.Before(end) {
		return nil
	}
	return &record.Warning{
		About: about, Reason: record.ReasonCertificateExpired, Detail: e.at.UTC().Format(time.RFC3339),
		Values: map[string]float64{"endedSeconds": end.Sub(e.at).Round(time.Second).Seconds()},
	}
}

// ForPod makes the sidecar of a pod that has its IP. complete, if not nil, may set
// more of its options. The sidecar does not run yet.
func (r RealSidecars) ForPod(ctx context.Context, pod *corev1.Pod, complete func(*sidecar.Options)) (*sidecar.Sidecar, error) {
	return r.sidecar(ctx, pod.Name, complete, r.podProxy(pod), r.podToken(pod))
}

// InPod makes the sidecar of a pod that has its IP and its network: the sidecar runs there, as user.
// complete is called with the proxy, whose interception the pod's network needs before the sidecar runs.
func (r RealSidecars) InPod(ctx context.Context, pod *corev1.Pod, own *podnet.Pod, user uint32,
	complete func(*sidecar.Options, RealProxy) error,
) (*sidecar.Sidecar, error) {
	var real RealProxy
	var failed error
	made, err := r.sidecar(ctx, pod.Name,
		func(o *sidecar.Options) {
			o.AdminPort, o.Network, o.Dial, o.User = real.Interception.Admin, own.Network(), own.DialContext, user
			failed = complete(o, real)
		},
		func(at ProxyPlace) (_ RealProxy, err error) {
			at.Own = true
			real, err = r.podProxy(pod)(at)
			return real, err
		},
		r.podToken(pod))
	return made, errors.Join(err, failed)
}

func (r RealSidecars) podProxy(pod *corev1.Pod) func(ProxyPlace) (RealProxy, error) {
	return func(at ProxyPlace) (RealProxy, error) {
		return r.Adapter.Real.PodProxy(pod, at)
	}
}

func (r RealSidecars) podToken(pod *corev1.Pod) func(context.Context) (proxy.Token, error) {
	return func(ctx context.Context) (proxy.Token, error) { return r.Adapter.Real.Token(ctx, pod) }
}

// ForHost makes the sidecar of a workload of this host, whose objects are there.
func (r RealSidecars) ForHost(ctx context.Context, w HostWorkload, complete func(*sidecar.Options)) (*sidecar.Sidecar, error) {
	return r.sidecar(ctx, w.Name, complete,
		func(at ProxyPlace) (RealProxy, error) {
			return r.Adapter.Real.Host.HostProxy(w, at)
		},
		func(ctx context.Context) (proxy.Token, error) { return r.Adapter.Real.Host.HostToken(ctx, w) })
}

func (r RealSidecars) sidecar(ctx context.Context, name string, complete func(*sidecar.Options),
	proxyAt func(ProxyPlace) (RealProxy, error), token func(context.Context) (proxy.Token, error),
) (*sidecar.Sidecar, error) {
	ports, err := process.FreePorts(3)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(r.Dir, name)
	real, err := proxyAt(ProxyPlace{
		Envoy:       sidecar.EnvoyIn(dir),
		Discovery:   r.Discovery,
		Ports:       ProxyPorts{Admin: ports[0], Metrics: ports[1], Ready: ports[2]},
		Concurrency: r.Concurrency, CertificateLifetime: r.Lifetime,
	})
	if err != nil {
		return nil, err
	}
	options := sidecar.Options{
		Name: "sidecar-" + name, Dir: dir, Group: r.Group, Log: filepath.Join(r.Logs, "sidecar-"+name+".log"),
		Envoy: r.Programs[cmp.Or(r.Proxy, component.Envoy)], Args: real.Args, Env: real.Env, Files: real.Files,
		AdminPort: ports[0], Cluster: real.Cluster, Certificate: real.Certificate, HoldsSecret: real.HoldsSecret,
		TokenFile: real.TokenFile,
		Token:     token,
	}
	if real.Agent {
		options.Agent = r.Programs[component.PilotAgent]
	}
	if real.KeyFile != "" {
		if err := r.certify(ctx, real, token); err != nil {
			return nil, fmt.Errorf("getting the certificate of sidecar %s: %w", name, err)
		}
	}
	if complete != nil {
		complete(&options)
	}
	return sidecar.New(options)
}

// certify adds to the files of a proxy without an agent what an agent would have
// requested: a key and its certificate. It is not renewed. Its lifetime is 24 h, as
// agents request, also where simulated sidecars request another one; a run that outlasts it has a warning.
func (r RealSidecars) certify(ctx context.Context, real RealProxy, token func(context.Context) (proxy.Token, error)) error {
	key, err := rsa.GenerateKey(rand.Reader, svid.KeyBits)
	if err != nil {
		return err
	}
	request, err := svid.NewRequest(func() (crypto.Signer, error) { return key, nil }, real.Sidecar.Identity)
	if err != nil {
		return err
	}
	bearer, err := token(ctx)
	if err != nil {
		return err
	}
	issuer, err := r.Adapter.Real.Issuer(real.Sidecar)
	if err != nil {
		return err
	}
	issued, err := issuer.Issue(ctx, bearer.Value, request.PEM)
	if err = errors.Join(err, issuer.Close()); err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	chain := bytes.Join(issued.Chain, nil)
	block, _ := pem.Decode(chain) // its own comes first
	if block == nil {
		return errors.New("reading the chain: want PEM")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("reading the chain: %w", err)
	}
	r.Expiry.note(leaf.NotAfter)
	real.Files[real.ChainFile] = chain
	real.Files[real.KeyFile] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	return nil
}

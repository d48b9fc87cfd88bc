package osm

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/proxy"
)

// What an injected sidecar has in its pod: pkg/injector, pkg/envoy/bootstrap and pkg/constants of its module.
const (
	sidecarContainer = "envoy"
	bootstrapFolder  = "/etc/envoy/"
	bootstrapFile    = "bootstrap.yaml"

	adsHost   = controllerName + "." + namespace + ".svc." + trustDomain
	adsPort   = 15128
	adminPort = 15000

	initContainer = "osm-init"
	proxyUser     = 1500  // constants.EnvoyUID
	meshALPN      = "osm" // envoy.ALPNInMesh
)

// PodProxy is part of controlplane.RealProxies: it returns an Envoy with the bootstrap that the injector wrote, and the
// arguments of the injected container. Its folder, the address of osm-controller and the port of its admin
// interface are those of a process of this host.
func (c *controlPlane) PodProxy(pod *corev1.Pod, at controlplane.ProxyPlace) (controlplane.RealProxy, error) {
	id := pod.Namespace + "/" + pod.Name
	secret, err := c.bootstrap(pod)
	if err != nil {
		return controlplane.RealProxy{}, err
	}
	identity, err := c.spec(pod, secret)
	if err != nil {
		return controlplane.RealProxy{}, err
	}
	if at.Discovery != "" {
		identity.Address = at.Discovery
	}
	container := controlplane.Injected(pod, sidecarContainer)
	if container == nil {
		return controlplane.RealProxy{}, fmt.Errorf("pod %s has no container %s: the injector has not changed it", id, sidecarContainer)
	}
	files := map[string][]byte{}
	for name, text := range secret.Data {
		files[name] = []byte(here(string(text)))
	}
	admin, interception := at.Ports.Admin, (*controlplane.Interception)(nil)
	if at.Own {
		if interception, err = c.interception(pod, identity); err != nil {
			return controlplane.RealProxy{}, fmt.Errorf("reading container %s of pod %s: %w", initContainer, id, err)
		}
		identity.Address, admin = local(adsPort), interception.Admin
	}
	bootstrap, err := moved(string(files[bootstrapFile]), identity.Address, admin)
	if err != nil {
		return controlplane.RealProxy{}, fmt.Errorf("reading %s of secret %s/%s: %w", bootstrapFile, pod.Namespace, secret.Name, err)
	}
	files[bootstrapFile] = []byte(bootstrap)
	real := controlplane.RealProxy{
		Env: []string{"PATH=/usr/bin:/bin"}, Files: files,
		Cluster: controllerName, Certificate: certificate + pod.Namespace + "/" + pod.Spec.ServiceAccountName,
		// Its own are of the bootstrap's files.
		HoldsSecret: func(name string) bool { return strings.Contains(name, ":") },
		Sidecar:     identity, Interception: interception,
	}
	for _, arg := range container.Args {
		real.Args = append(real.Args, here(arg))
	}
	real.Args = append(real.Args, "--disable-hot-restart") // which only one Envoy of a host can have
	if at.Concurrency > 0 {
		real.Args = append(real.Args, "--concurrency", strconv.Itoa(at.Concurrency))
	}
	for name, value := range controlplane.EnvironmentOf(pod, container) {
		real.Env = append(real.Env, name+"="+value)
	}
	return real, nil
}

// interception returns the interception of a pod: the rules of its init container, and osm-controller at the port that it has in
// the cluster.
func (c *controlPlane) interception(pod *corev1.Pod, identity proxy.Spec) (*controlplane.Interception, error) {
	container := controlplane.Injected(pod, initContainer)
	if container == nil || len(container.Args) == 0 {
		return nil, errors.New("it is not there: the injector has not changed the pod")
	}
	rules, err := hereDocument(container.Args[len(container.Args)-1])
	if err != nil {
		return nil, err
	}
	own, err := tls.X509KeyPair(identity.ClientCertificatePEM, identity.ClientKeyPEM)
	if err != nil {
		return nil, err
	}
	return &controlplane.Interception{
		Rules: rules, Admin: adminPort, Reaches: map[int]string{adsPort: identity.Address},
		// With the certificate of the bootstrap, which is the mesh's and names no service account that
		// a TrafficTarget could allow. Up to TLS 1.2 the end of the handshake shows that it was taken.
		OtherIdentity: func(s topology.Service) *tls.Config {
			return &tls.Config{
				Certificates: []tls.Certificate{own}, NextProtos: []string{meshALPN}, MaxVersion: tls.VersionTLS12,
				ServerName: s.Name + "." + s.Namespace + ".svc." + trustDomain, InsecureSkipVerify: true, // who answers is the client's proxy's matter
			}
		},
	}, nil
}

// hereDocument returns the here-document (<<EOF) of a shell command.
func hereDocument(command string) (string, error) {
	const begin, end = "<<EOF\n", "\nEOF"
	_, text, found := strings.Cut(command, begin)
	text, _, ended := strings.Cut(text, end)
	if !found || !ended || !strings.HasPrefix(command, "iptables-restore ") {
		return "", fmt.Errorf("parsing %q: want iptables-restore with %s", command, strings.TrimSpace(begin))
	}
	return text, nil
}

// here replaces the folder of a pod's bootstrap by the working folder. Envoy watches files by their folder, so
// it must be named.
func here(text string) string { return strings.ReplaceAll(text, bootstrapFolder, "./") }

// moved returns a bootstrap with another address of osm-controller and another port of the admin interface.
func moved(bootstrap, address string, admin int) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	for _, each := range []struct{ from, to string }{
		{"address: " + adsHost + "\n", "address: " + host + "\n"},
		{"port_value: " + strconv.Itoa(adsPort) + "\n", "port_value: " + port + "\n"},
		{"port_value: " + strconv.Itoa(adminPort) + "\n", "port_value: " + strconv.Itoa(admin) + "\n"},
	} {
		if n := strings.Count(bootstrap, each.from); n != 1 {
			return "", fmt.Errorf("%q is in it %d times: want once", strings.TrimSpace(each.from), n)
		}
		bootstrap = strings.Replace(bootstrap, each.from, each.to, 1)
	}
	return bootstrap, nil
}

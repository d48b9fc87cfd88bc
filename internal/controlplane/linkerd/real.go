package linkerd

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	tokens "scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/pkg/proxy"
)

const (
	initContainer = "linkerd-init"
	proxyUser     = 2102
	proxyWorkers  = 1 // without a limit of processors, the chart sets no LINKERD2_PROXY_CORES: linkerd2-proxy/src/rt.rs
	adminPort     = 4191

	// callerHeader is set by the proxy of a server: linkerd/app/inbound/src/http/set_identity_header.rs.
	callerHeader = "l5d-client-id"

	// Where a proxy that runs here reaches destination and identity: it connects without TLS to loopback addresses,
	// as parse_control_addr in linkerd/app/src/env.rs states. Identity's own port, 8080, is that of the application.
	reachedDestination = 8086
	reachedIdentity    = 18080

	envDirectory = "LINKERD2_PROXY_IDENTITY_DIR"
	envTokenFile = "LINKERD2_PROXY_IDENTITY_TOKEN_FILE"
	envCores     = "LINKERD2_PROXY_CORES"

	identityFolder = "identity"
	tokenFile      = "token"
)

// Token is part of controlplane.RealProxies.
func (c *controlPlane) Token(ctx context.Context, pod *corev1.Pod) (proxy.Token, error) {
	return tokens.Token(ctx, c.client, tokens.TokenRequest(pod, ""))
}

// PodProxy is part of controlplane.RealProxies: it returns a linkerd2-proxy with the environment of the injected
// container. Its folders and the addresses of destination and identity are those of a process of this host. Its
// key is made here, as by the program that starts it in its image (proxy-identity).
func (c *controlPlane) PodProxy(pod *corev1.Pod, at controlplane.ProxyPlace) (controlplane.RealProxy, error) {
	id := pod.Namespace + "/" + pod.Name
	spec, err := c.Spec(pod)
	if err != nil {
		return controlplane.RealProxy{}, err
	}
	if !at.Own {
		return controlplane.RealProxy{}, fmt.Errorf("running the proxy of pod %s: want a network namespace of its own", id)
	}
	init := controlplane.Injected(pod, initContainer)
	if init == nil {
		return controlplane.RealProxy{}, fmt.Errorf("pod %s has no container %s: the injector has not changed it", id, initContainer)
	}
	rules, err := initRules(init.Args)
	if err != nil {
		return controlplane.RealProxy{}, fmt.Errorf("reading container %s of pod %s: %w", initContainer, id, err)
	}
	key, request, err := newKey(spec.Identity)
	if err != nil {
		return controlplane.RealProxy{}, fmt.Errorf("making the key of pod %s: %w", id, err)
	}
	env := controlplane.EnvironmentOf(pod, controlplane.Injected(pod, proxyContainer))
	env[envDestination], env[envIdentity] = local(reachedDestination), local(reachedIdentity)
	env[envDirectory], env[envTokenFile] = identityFolder, tokenFile
	if at.Concurrency > 0 {
		env[envCores] = strconv.Itoa(at.Concurrency)
	}
	real := controlplane.RealProxy{
		Files:     map[string][]byte{identityFolder + "/key.p8": key, identityFolder + "/csr.der": request},
		TokenFile: tokenFile, Sidecar: spec,
		Interception: &controlplane.Interception{
			Rules: rules, Admin: adminPort,
			Reaches: map[int]string{reachedDestination: spec.Address, reachedIdentity: spec.Authority},
		},
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		real.Env = append(real.Env, name+"="+env[name])
	}
	return real, nil
}

// newKey makes a private key (PKCS #8) and the request for its certificate, both DER.
func newKey(identity string) (key, request []byte, err error) {
	private, err := svid.NewKey()
	if err != nil {
		return nil, nil, err
	}
	made, err := svid.NewRequest(func() (crypto.Signer, error) { return private, nil }, identity)
	if err != nil {
		return nil, nil, err
	}
	key, err = x509.MarshalPKCS8PrivateKey(private)
	return key, made.DER, err
}

// initRules returns the rules of the table nat that linkerd-init sets with its arguments: package iptables of
// linkerd2-proxy-init v1.3.13. They redirect all ports.
func initRules(args []string) (string, error) {
	f := flag.NewFlagSet(initContainer, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	incoming := f.Uint("incoming-proxy-port", 0, "")
	outgoing := f.Uint("outgoing-proxy-port", 0, "")
	user := f.Uint("proxy-uid", 0, "")
	ignoreIncoming := f.String("inbound-ports-to-ignore", "", "")
	ignoreOutgoing := f.String("outbound-ports-to-ignore", "", "")
	if err := f.Parse(args); err != nil {
		return "", err
	}
	if *incoming == 0 || *outgoing == 0 || *user == 0 || f.NArg() > 0 {
		return "", errors.New("want --incoming-proxy-port, --outgoing-proxy-port and --proxy-uid, and no other arguments than flags")
	}
	const redirect, output = "PROXY_INIT_REDIRECT", "PROXY_INIT_OUTPUT"
	var b strings.Builder
	line := func(format string, values ...any) { fmt.Fprintf(&b, format+"\n", values...) }
	ignore := func(chain, ports string) {
		if ports != "" {
			line("-A %s -p tcp --match multiport --dports %s -j RETURN", chain, strings.ReplaceAll(ports, "-", ":"))
		}
	}
	line("*nat")
	line(":%s - [0:0]", redirect)
	line(":%s - [0:0]", output)
	line("-A PREROUTING -j %s", redirect)
	line("-A OUTPUT -j %s", output)
	ignore(redirect, *ignoreIncoming)
	line("-A %s -p tcp -j REDIRECT --to-port %d", redirect, *incoming)
	line("-A %s -o lo ! -d 127.0.0.1/32 -m owner --uid-owner %d -j %s", output, *user, redirect)
	line("-A %s -m owner --uid-owner %d -j RETURN", output, *user)
	line("-A %s -o lo -j RETURN", output)
	ignore(output, *ignoreOutgoing)
	line("-A %s -p tcp -j REDIRECT --to-port %d", output, *outgoing)
	line("COMMIT")
	return b.String(), nil
}

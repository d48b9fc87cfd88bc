package linkerd

import (
	"crypto/ecdsa"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/podnet"
)

// The arguments are those of the chart's template partials.proxy-init.
func TestInitRules(t *testing.T) {
	got, err := initRules([]string{
		"--incoming-proxy-port", "4143", "--outgoing-proxy-port", "4140", "--proxy-uid", "2102",
		"--inbound-ports-to-ignore", "4190,4191,25-27", "--outbound-ports-to-ignore", "443",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `*nat
:PROXY_INIT_REDIRECT - [0:0]
:PROXY_INIT_OUTPUT - [0:0]
-A PREROUTING -j PROXY_INIT_REDIRECT
-A OUTPUT -j PROXY_INIT_OUTPUT
-A PROXY_INIT_REDIRECT -p tcp --match multiport --dports 4190,4191,25:27 -j RETURN
-A PROXY_INIT_REDIRECT -p tcp -j REDIRECT --to-port 4143
-A PROXY_INIT_OUTPUT -o lo ! -d 127.0.0.1/32 -m owner --uid-owner 2102 -j PROXY_INIT_REDIRECT
-A PROXY_INIT_OUTPUT -m owner --uid-owner 2102 -j RETURN
-A PROXY_INIT_OUTPUT -o lo -j RETURN
-A PROXY_INIT_OUTPUT -p tcp --match multiport --dports 443 -j RETURN
-A PROXY_INIT_OUTPUT -p tcp -j REDIRECT --to-port 4140
COMMIT
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := podnet.ParseRules(got); err != nil {
		t.Errorf("the rules cannot be applied: %v", err)
	}
}

func TestInitRulesRefuses(t *testing.T) {
	ports := []string{"--incoming-proxy-port", "4143", "--outgoing-proxy-port", "4140"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "want --incoming-proxy-port"},
		{ports, "want --incoming-proxy-port, --outgoing-proxy-port and --proxy-uid"},
		{append(ports, "--proxy-uid", "root"), "proxy-uid"},
		{append(ports, "--proxy-uid", "2102", "--ports-to-redirect", "80"), "not defined: -ports-to-redirect"},
		{append(ports, "--proxy-uid", "2102", "simulate"), "no other arguments"},
	} {
		if _, err := initRules(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestNewKey(t *testing.T) {
	const identity = "client.mesh.serviceaccount.identity.linkerd.cluster.local"
	der, request, err := newKey(identity)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.ParseCertificateRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := csr.CheckSignature(); err != nil {
		t.Error(err)
	}
	if public, ok := csr.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(key.(*ecdsa.PrivateKey).Public()) {
		t.Errorf("the request is for another key: %v", csr.PublicKey)
	}
	if len(csr.DNSNames) != 1 || csr.DNSNames[0] != identity {
		t.Errorf("the request is for %q, want %s", csr.DNSNames, identity)
	}
}

// Package authority is the client of the certificate API that Istio made a
// standard of (istio.v1.auth.IstioCertificateService), for control planes that
// offer it. Which token and which roots belong to a proxy is left to them.
package authority

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	securityv1 "istio.io/api/security/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/pkg/controlplane"
)

const (
	// tokenLife is the expirationSeconds of Istio's injection template.
	tokenLife = 12 * time.Hour
	// DefaultLifetime is what Istio's agent asks for by itself (SECRET_TTL).
	DefaultLifetime = 24 * time.Hour
	// bufferSize is small: there is one connection for each of thousands of
	// proxies, and it carries a few kB in a day.
	bufferSize = 4 << 10
)

// Token requests a token for a pod as the kubelet would: for that audience and
// bound to that very pod, so that no cache of the API server answers for two.
func Token(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, audience string) (controlplane.Token, error) {
	bound := &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	token, err := request(ctx, client, pod.Namespace, pod.Spec.ServiceAccountName, audience, bound)
	if err != nil {
		return controlplane.Token{}, fmt.Errorf("requesting a token for pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return token, nil
}

// AccountToken requests a token of a service account that is bound to no pod.
func AccountToken(ctx context.Context, client kubernetes.Interface, namespace, account, audience string) (controlplane.Token, error) {
	token, err := request(ctx, client, namespace, account, audience, nil)
	if err != nil {
		return controlplane.Token{}, fmt.Errorf("requesting a token for service account %s/%s: %w", namespace, account, err)
	}
	return token, nil
}

func request(ctx context.Context, client kubernetes.Interface, namespace, account, audience string, bound *authenticationv1.BoundObjectReference) (controlplane.Token, error) {
	seconds := int64(tokenLife / time.Second)
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: &seconds, BoundObjectRef: bound},
	}, metav1.CreateOptions{})
	if err != nil {
		return controlplane.Token{}, err
	}
	return controlplane.Token{Value: answer.Status.Token, Expires: answer.Status.ExpirationTimestamp.Time}, nil
}

// Client speaks to the certificate authority for one proxy. Like that of Istio's
// agent, its connection is apart from the stream's and stays open.
type Client struct {
	conn     *grpc.ClientConn
	headers  []string // key, value, key, value
	lifetime time.Duration
}

var _ controlplane.Issuer = (*Client)(nil)

// New makes the certificate client of one proxy; it does not connect yet. It
// fails when the proxy's roots hold no certificate.
func New(s controlplane.Sidecar) (*Client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.RootPEM) {
		return nil, errors.New("reading the certificate authority's root: no certificate in it")
	}
	conn, err := grpc.NewClient("passthrough:///"+s.Address,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: s.ServerName, MinVersion: tls.VersionTLS12})),
		grpc.WithReadBufferSize(bufferSize), grpc.WithWriteBufferSize(bufferSize), grpc.WithSharedWriteBuffer(true))
	if err != nil {
		return nil, fmt.Errorf("making a certificate client for %s: %w", s.Address, err)
	}
	c := &Client{conn: conn, lifetime: cmp.Or(s.CertificateLifetime, DefaultLifetime)}
	for k, v := range s.Headers {
		c.headers = append(c.headers, k, v)
	}
	return c, nil
}

// Issue has csrPEM signed. Issued.Sent is taken when the connection is up, so
// that dialling is not counted as the authority's time.
func (c *Client) Issue(ctx context.Context, token string, csrPEM []byte) (controlplane.Issued, error) {
	if err := c.connected(ctx); err != nil {
		return controlplane.Issued{}, err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, append([]string{"authorization", "Bearer " + token}, c.headers...)...)
	sent := time.Now()
	answer, err := securityv1.NewIstioCertificateServiceClient(c.conn).CreateCertificate(ctx, &securityv1.IstioCertificateRequest{
		Csr:              string(csrPEM),
		ValidityDuration: int64(c.lifetime / time.Second),
	})
	received := time.Now()
	if err != nil {
		return controlplane.Issued{}, fmt.Errorf("asking for a certificate: %w", err)
	}
	issued := controlplane.Issued{Sent: sent, Received: received}
	for _, certificate := range answer.GetCertChain() {
		issued.Chain = append(issued.Chain, []byte(certificate))
	}
	return issued, nil
}

// connected returns once the connection is up.
func (c *Client) connected(ctx context.Context) error {
	for {
		state := c.conn.GetState()
		if state == connectivity.Ready {
			return nil
		}
		if state == connectivity.Idle {
			c.conn.Connect()
		}
		if !c.conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("connecting to the certificate authority (%s): %w", state, ctx.Err())
		}
	}
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

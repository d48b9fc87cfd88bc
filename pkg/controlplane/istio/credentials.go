package istio

import (
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

	"scaler.mesh/scaler/pkg/controlplane"
)

const (
	tokenAudience = "istio-ca"
	tokenLife     = 12 * time.Hour // injection template's expirationSeconds

	// certificateLife is the agent's SECRET_TTL.
	certificateLife = 24 * time.Hour
)

// Token requests a token for a pod as the kubelet would: the audience of
// Istio's certificate authority, bound to that very pod, so that no cache of
// the API server answers for two.
func (c *ControlPlane) Token(ctx context.Context, pod *corev1.Pod) (controlplane.Token, error) {
	seconds := int64(tokenLife / time.Second)
	answer, err := c.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences:         []string{tokenAudience},
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return controlplane.Token{}, fmt.Errorf("requesting a token for pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return controlplane.Token{Value: answer.Status.Token, Expires: answer.Status.ExpirationTimestamp.Time}, nil
}

// issuer speaks to Istio's certificate authority for one proxy. Like the
// agent's, its connection is apart from the stream's and stays open.
type issuer struct {
	conn      *grpc.ClientConn
	clusterID string
}

// Issuer makes the certificate client of one proxy; it does not connect yet.
func (c *ControlPlane) Issuer(s controlplane.Sidecar) (controlplane.Issuer, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.RootPEM) {
		return nil, errors.New("reading Istio's root certificate: no certificate in it")
	}
	conn, err := grpc.NewClient("passthrough:///"+s.Address,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: s.ServerName, MinVersion: tls.VersionTLS12})),
		grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10), grpc.WithSharedWriteBuffer(true))
	if err != nil {
		return nil, fmt.Errorf("making a certificate client for %s: %w", s.Address, err)
	}
	return &issuer{conn: conn, clusterID: s.Headers["ClusterID"]}, nil
}

// Issue has csrPEM signed. Issued.Sent is taken when the connection is up, so
// that dialling is not counted as the authority's time.
func (i *issuer) Issue(ctx context.Context, token string, csrPEM []byte) (controlplane.Issued, error) {
	if err := i.connected(ctx); err != nil {
		return controlplane.Issued{}, err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token, "ClusterID", i.clusterID)
	sent := time.Now()
	answer, err := securityv1.NewIstioCertificateServiceClient(i.conn).CreateCertificate(ctx, &securityv1.IstioCertificateRequest{
		Csr:              string(csrPEM),
		ValidityDuration: int64(certificateLife / time.Second),
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
func (i *issuer) connected(ctx context.Context) error {
	for {
		state := i.conn.GetState()
		if state == connectivity.Ready {
			return nil
		}
		if state == connectivity.Idle {
			i.conn.Connect()
		}
		if !i.conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("connecting to the certificate authority (%s): %w", state, ctx.Err())
		}
	}
}

// Close ends the connection.
func (i *issuer) Close() error { return i.conn.Close() }

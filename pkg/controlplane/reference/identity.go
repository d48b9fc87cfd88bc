package reference

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

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/controlplane/reference/server"
)

const (
	tokenLife       = 12 * time.Hour
	certificateLife = 24 * time.Hour
	keepalive       = 30 * time.Second
)

// Sidecar is the proxy of a pod that has its IP: its node id is the pod's name,
// its node cluster the workload. The server needs to know no more.
func (c *ControlPlane) Sidecar(pod *corev1.Pod) (controlplane.Sidecar, error) {
	id := pod.Namespace + "/" + pod.Name
	service := pod.Labels[kwok.ServiceLabel]
	if service == "" {
		return controlplane.Sidecar{}, fmt.Errorf("pod %s has no label %s: it is not part of the mesh", id, kwok.ServiceLabel)
	}
	if pod.Status.PodIP == "" {
		return controlplane.Sidecar{}, fmt.Errorf("pod %s has no IP yet", id)
	}
	return controlplane.Sidecar{
		ID:          id,
		Address:     address(c.ports.secure),
		ServerName:  server.ServerName,
		RootPEM:     c.root,
		NodeID:      id,
		NodeCluster: server.Workload(pod.Namespace, service),
		Identity:    server.SPIFFE(pod.Namespace, pod.Spec.ServiceAccountName),
		Keepalive:   keepalive,
	}, nil
}

// Token requests a token bound to that very pod, as for any mesh: whether the
// server looks at it is its own setting.
func (c *ControlPlane) Token(ctx context.Context, pod *corev1.Pod) (controlplane.Token, error) {
	seconds := int64(tokenLife / time.Second)
	answer, err := c.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences:         []string{server.Audience},
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return controlplane.Token{}, fmt.Errorf("requesting a token for pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return controlplane.Token{Value: answer.Status.Token, Expires: answer.Status.ExpirationTimestamp.Time}, nil
}

// issuer speaks to the certificate API for one proxy, on a connection of its own.
type issuer struct{ conn *grpc.ClientConn }

// Issuer makes the certificate client of one proxy; it does not connect yet.
func (c *ControlPlane) Issuer(s controlplane.Sidecar) (controlplane.Issuer, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.RootPEM) {
		return nil, errors.New("reading the reference control plane's root: no certificate in it")
	}
	conn, err := grpc.NewClient("passthrough:///"+s.Address,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: s.ServerName, MinVersion: tls.VersionTLS12})),
		grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10), grpc.WithSharedWriteBuffer(true))
	if err != nil {
		return nil, fmt.Errorf("making a certificate client for %s: %w", s.Address, err)
	}
	return &issuer{conn}, nil
}

// Issue has csrPEM signed.
func (i *issuer) Issue(ctx context.Context, token string, csrPEM []byte) (controlplane.Issued, error) {
	for state := i.conn.GetState(); state != connectivity.Ready; state = i.conn.GetState() {
		if state == connectivity.Idle {
			i.conn.Connect()
		}
		if !i.conn.WaitForStateChange(ctx, state) {
			return controlplane.Issued{}, fmt.Errorf("connecting to the certificate authority (%s): %w", state, ctx.Err())
		}
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	sent := time.Now()
	answer, err := securityv1.NewIstioCertificateServiceClient(i.conn).CreateCertificate(ctx, &securityv1.IstioCertificateRequest{
		Csr: string(csrPEM), ValidityDuration: int64(certificateLife / time.Second),
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

// Close ends the connection.
func (i *issuer) Close() error { return i.conn.Close() }

package authority

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	securityv1 "istio.io/api/security/v1alpha1"

	"scaler.mesh/scaler/internal/ztunnel"
	"scaler.mesh/scaler/pkg/proxy"
)

// NodeClient speaks to the certificate authority for the proxy of a node, as ztunnel does
// (its src/identity/caclient.rs): requests for several identities are under way at once over
// one connection. It is dialled by the first request that finds none, without a wait after
// one that failed; a request that is refused leaves it open.
type NodeClient struct {
	// fixed after NewNode
	address  string // may be a Service of backends
	config   *tls.Config
	backends *proxy.Backends
	headers  metadata.MD
	lifetime time.Duration

	mu     sync.Mutex
	conn   *grpc.ClientConn // nil where there is none
	closed bool
}

var _ ztunnel.Issuer = (*NodeClient)(nil)

// nodeKeepalive is the interval of ztunnel's pings while a request is under way, and nodePingTimeout
// the time limit of the answer (src/tls/control.rs; without http2_keep_alive_while_idle,
// hyper sends no pings over an idle connection, for which istiod would close it). A connection
// that was idle for nodeIdle is not used again (pool_idle_timeout of hyper-util's client).
const (
	nodeKeepalive   = 30 * time.Second
	nodePingTimeout = 10 * time.Second
	nodeIdle        = 90 * time.Second
)

// NewNode makes the certificate client of one node's proxy; it does not connect yet. The
// address of the proxy may be a Service of backends. It fails when the proxy's roots hold no
// certificate.
func NewNode(s proxy.Spec, backends *proxy.Backends) (*NodeClient, error) {
	config, err := trust(s.RootPEM, s.ServerName)
	if err != nil {
		return nil, err
	}
	return &NodeClient{
		address: s.Address, config: config, backends: backends,
		headers: headers(s), lifetime: cmp.Or(s.CertificateLifetime, DefaultLifetime),
	}, nil
}

// impersonated is the entry of a request's metadata that has the identity.
const impersonated = "ImpersonatedIdentity"

// IssueFor is part of ztunnel.Issuer. Issued.Sent is as Client.Issue has it.
func (c *NodeClient) IssueFor(ctx context.Context, token, identity string, csrPEM []byte) (proxy.Issued, error) {
	conn, err := c.connected(ctx)
	if err != nil {
		return proxy.Issued{}, err
	}
	md := c.headers.Copy()
	md.Set("authorization", "Bearer "+token)
	issued := proxy.Issued{Sent: time.Now()}
	response, err := securityv1.NewIstioCertificateServiceClient(conn).CreateCertificate(metadata.NewOutgoingContext(ctx, md), &securityv1.IstioCertificateRequest{
		Csr: string(csrPEM), ValidityDuration: int64(c.lifetime / time.Second),
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{impersonated: structpb.NewStringValue(identity)}},
	})
	issued.Received = time.Now()
	if err != nil {
		return issued, err
	}
	for _, certificate := range response.GetCertChain() {
		issued.Chain = append(issued.Chain, []byte(certificate))
	}
	return issued, nil
}

// connected returns the connection, once it is up. One that cannot be made is forgotten.
func (c *NodeClient) connected(ctx context.Context) (*grpc.ClientConn, error) {
	conn, err := c.open()
	if err != nil {
		return nil, err
	}
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready:
			return conn, nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			c.forget(conn)
			return nil, status.Error(codes.Unavailable, "connecting to the certificate authority failed")
		case connectivity.Idle:
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, state) {
			return nil, context.Cause(ctx)
		}
	}
}

// open returns the connection there is, or a new one that does not dial yet.
func (c *NodeClient) open() (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.conn != nil {
		return c.conn, nil
	}
	conn, err := grpc.NewClient("passthrough:///authority",
		grpc.WithTransportCredentials(credentials.NewTLS(c.config)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			address, err := c.backends.Choose(c.address)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: nodeKeepalive, Timeout: nodePingTimeout}),
		grpc.WithIdleTimeout(nodeIdle), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithReadBufferSize(4<<10), grpc.WithSharedWriteBuffer(true), // of hundreds
	)
	c.conn = conn
	return conn, err
}

// forget closes a connection that failed; the next request makes another one.
func (c *NodeClient) forget(conn *grpc.ClientConn) {
	c.mu.Lock()
	if c.conn == conn {
		c.conn = nil
	}
	c.mu.Unlock()
	_ = conn.Close() // it may be closed already
}

// Close ends the connection.
func (c *NodeClient) Close() error {
	c.mu.Lock()
	conn := c.conn
	c.conn, c.closed = nil, true
	c.mu.Unlock()
	if conn == nil {
		return nil
	}
	return conn.Close()
}

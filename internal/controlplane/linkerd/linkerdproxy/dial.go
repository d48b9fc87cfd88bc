package linkerdproxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"scaler.mesh/scaler/pkg/proxy"
)

// Settings of the proxy's connections to its control plane, from linkerd/app/src/env.rs.
const (
	connectTimeout = time.Second // DEFAULT_OUTBOUND_CONNECT_TIMEOUT
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 500 * time.Millisecond
	backoffJitter  = 0.1
	streamWindow   = 65_535
	connWindow     = 1 << 20

	// buffer is the size of a connection's buffer in each direction, in bytes: less than gRPC's own, as there are thousands.
	buffer = 4 << 10
)

// connection is one that is up.
type connection struct {
	*grpc.ClientConn
	server    string // host:port that it is to
	connected time.Time
}

// dial connects to an address, or to an endpoint of it.
func (p *Proxy) dial(ctx context.Context, address string) (*connection, error) {
	server, err := p.services.Backends.Choose(address)
	if err != nil {
		return nil, err
	}
	var failure atomic.Value // of the last dial
	conn, err := grpc.NewClient("passthrough:///"+server,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithReadBufferSize(buffer), grpc.WithWriteBufferSize(buffer), grpc.WithSharedWriteBuffer(true),
		grpc.WithInitialWindowSize(streamWindow), grpc.WithInitialConnWindowSize(connWindow),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)),
		grpc.WithContextDialer(func(ctx context.Context, at string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", at)
			if err != nil {
				failure.Store(err)
			}
			return c, err
		}))
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", server, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.spec.Slowdown.Of(connectTimeout), errors.New("no connection in time"))
	defer cancel()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if state == connectivity.TransientFailure {
			err, _ = failure.Load().(error)
			err = errors.Join(errors.New("connecting to "+server), err)
		} else if !conn.WaitForStateChange(limited, state) {
			err = fmt.Errorf("connecting to %s: %w", server, context.Cause(limited))
		}
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return &connection{conn, server, time.Now()}, nil
}

// backoff returns the wait after so many failures, one at least.
func (p *Proxy) backoff(failures int) time.Duration {
	base := longestBackoff
	if failures < 8 {
		base = min(longestBackoff, firstBackoff<<(failures-1))
	}
	return p.spec.Slowdown.Of(min(longestBackoff, base+time.Duration(rand.Float64()*backoffJitter*float64(base))))
}

// classify states how an attempt ended that had a connection.
func classify(err error, answered bool) proxy.Class {
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return proxy.Unauthorized
	case codes.ResourceExhausted:
		if !answered {
			return proxy.Refused
		}
	}
	return proxy.Lost
}

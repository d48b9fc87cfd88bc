package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// OwnCluster is the Setup.Kubeconfig of a worker that runs in the cluster itself, with the rights
// of its own service account.
const OwnCluster = "the cluster that it runs in"

// Listen serves the connections of the listener one after another, each from the
// beginning. It returns when one of them sends Close, or when there was none for idle, as scaler
// is gone then. It calls ended with the reason for which a connection, or waiting for one, ended. It closes the
// listener.
func Listen(ctx context.Context, listener *net.TCPListener, idle time.Duration, o HostOptions, ended func(error)) error {
	defer listener.Close()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	for {
		if err := listener.SetDeadline(time.Now().Add(idle)); err != nil {
			return err
		}
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, os.ErrDeadlineExceeded):
			ended(fmt.Errorf("waiting for scaler to connect: no connection for %v", idle))
			return nil // so that a Job is complete, and does not replace the worker
		case err != nil:
			return fmt.Errorf("waiting for scaler to connect: %w", err)
		}
		err = Serve(ctx, Timed(conn, SilenceTimeout), o)
		if err == nil || ctx.Err() != nil {
			return err
		}
		ended(err)
	}
}

// SilenceTimeout is the time without a byte after which the connection to a worker on another machine
// counts as lost. Both ends send something each second.
const SilenceTimeout = 20 * time.Second

// Timed returns a connection on which Read fails when nothing was received for so long.
func Timed(conn net.Conn, silence time.Duration) net.Conn { return timed{conn, silence} }

type timed struct {
	net.Conn
	silence time.Duration
}

// Read is part of net.Conn.
func (c timed) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

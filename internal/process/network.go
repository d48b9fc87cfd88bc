package process

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"

	"scaler.mesh/scaler/internal/linux"
)

// Network is a network namespace made by this program (network_namespaces(7)) that has
// only a loopback interface: a child in it can bind any port, and reaches only what
// listens in the namespace. It ends with the last child and the last connection in it,
// once it is closed. Its methods may be called by several goroutines.
type Network struct{ file *os.File }

// OpenNetwork makes a network namespace. It needs the capability CAP_SYS_ADMIN, which
// root has, including the root of a user namespace.
func OpenNetwork() (*Network, error) {
	n := &Network{}
	err := onThread(func() (err error) {
		if err := linux.NewNetwork(); err != nil {
			return fmt.Errorf("%w: want root, as by `unshare --user --map-root-user`", err)
		}
		if n.file, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		return linux.RaiseLoopback()
	})
	if err != nil {
		n.file.Close() // an error if there is none, which is ignored
		return nil, fmt.Errorf("making a network namespace: %w", err)
	}
	return n, nil
}

// onThread calls do on a separate thread, which ends afterwards, so that changes that do
// makes to its thread affect nothing else.
func onThread(do func() error) error {
	done := make(chan error)
	go ownThread(func() { done <- do() })
	return <-done
}

// ownThread calls do on a thread that ends with the calling goroutine, which must return
// right afterwards. It avoids the program's main thread, which Go keeps for ever in the
// state in which do left it: the kernel shows its namespaces, niceness and processors as
// those of the program.
func ownThread(do func()) {
	runtime.LockOSThread()
	if linux.ThreadID() != os.Getpid() {
		do() // and never unlock
		return
	}
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go func() { // elsewhere, as this goroutine has the main thread
		defer close(done)
		runtime.LockOSThread()
		do()
	}()
	<-done
}

// enter moves the calling thread into the namespace.
func (n *Network) enter() error {
	if err := linux.EnterNetwork(int(n.file.Fd())); err != nil {
		return fmt.Errorf("entering a network namespace: %w", err)
	}
	return nil
}

// Do calls do on a thread in the namespace. Sockets that do opens belong to the
// namespace; goroutines that it starts do not run there.
func (n *Network) Do(do func() error) error {
	return onThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return do()
	})
}

// FD returns the file descriptor of the namespace, as used to move interfaces into it. It
// is valid until Close.
func (n *Network) FD() int { return int(n.file.Fd()) }

// Listen listens on a TCP address of the namespace; connections are accepted by this program,
// wherever its threads are.
func (n *Network) Listen(ctx context.Context, address string) (listener net.Listener, err error) {
	err = n.Do(func() error {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp", address)
		return err
	})
	return listener, err
}

// Dial connects to a TCP address of the namespace, which must be an IP address with a port.
func (n *Network) Dial(ctx context.Context, address string) (conn net.Conn, err error) {
	err = n.Do(func() error {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", address)
		return err
	})
	return conn, err
}

// Close closes the namespace: nothing more can enter it.
func (n *Network) Close() error { return n.file.Close() }

// Dialer connects repeatedly to addresses of one namespace. It keeps its threads there
// until Close, because a new thread for each connection would take longer than
// connecting. Its methods may be called by several goroutines.
type Dialer struct {
	network *Network
	calls   chan func(entered error)
	ended   chan struct{}
	threads sync.WaitGroup
}

// NewDialer makes a Dialer without threads.
func (n *Network) NewDialer() *Dialer {
	return &Dialer{network: n, calls: make(chan func(entered error)), ended: make(chan struct{})}
}

// DialContext is like net.Dialer's, for addresses that are an IP address with a port. It
// must not be called after Close.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	done := make(chan struct{})
	call := func(entered error) {
		defer close(done)
		if err = entered; err == nil {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
		}
	}
	select {
	case d.calls <- call: // a thread that has nothing to do
	default:
		d.threads.Go(func() { ownThread(func() { d.serve(call) }) })
	}
	<-done
	return conn, err
}

// serve makes calls on a thread of the namespace, beginning with this one.
func (d *Dialer) serve(call func(entered error)) {
	err := d.network.enter()
	call(err)
	for err == nil {
		select {
		case call := <-d.calls:
			call(nil)
		case <-d.ended:
			return
		}
	}
}

// Close ends the threads and returns when they have ended. Connections stay open.
func (d *Dialer) Close() {
	close(d.ended)
	d.threads.Wait()
}

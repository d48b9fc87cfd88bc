package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/process"
)

// Command is the hidden command of scaler that runs Serve, on the connection that it
// finds at ChildFD.
const Command = "worker"

// ChildFD is the file descriptor of the connection in a child process: the first that a
// child inherits after the three standard ones.
const ChildFD = 3

// exitTime limits the wait for the end of a child that was lost, whose error states why it ended.
const exitTime = 2 * time.Second

// Child is a Remote whose process is a child of this one. It ends when its connection
// does, which it does with this process, too.
type Child struct {
	*Remote
	process *process.Process
}

// StartChild starts a child of this program that runs proxies, and connects to it. The child
// joins the group, logs into the folder logs, and has this process's priority and processors.
func StartChild(ctx context.Context, group *process.Group, logs string, s Setup, o Options) (*Child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding scaler's own program: %w", err)
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("making the connection of worker %s: %w", o.Name, err)
	}
	p, err := group.Start(process.Spec{
		Name: o.Name, Path: program, Args: []string{Command}, Log: filepath.Join(logs, o.Name+".log"), Files: []*os.File{theirs},
	})
	_ = theirs.Close() // the child has its own
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	failed := o.Failed
	o.Failed = func(err error) { failed(withCause(err, p)) }
	remote, err := Connect(ctx, ours, s, o)
	if err != nil {
		return nil, withCause(err, p) // the child is in the group
	}
	return &Child{remote, p}, nil
}

// Usage reads what the child's process uses. Each sampler needs a source of its own.
func (c *Child) Usage() measure.Source { return measure.OfProcess(c.process.Handle()) }

// withCause adds why a child ended, if it did.
func withCause(err error, p *process.Process) error {
	timer := time.NewTimer(exitTime)
	defer timer.Stop()
	select {
	case <-p.Done():
		return errors.Join(err, p.Err())
	case <-timer.C:
		return err
	}
}

// socketPair makes a connection and the file of its other end.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|linux.CloseOnExec, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	own, theirs := os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "worker")
	conn, err := net.FileConn(own)
	err = errors.Join(err, own.Close()) // net has a copy
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}

// ParentConn opens the connection that StartChild gave to this process.
func ParentConn() (net.Conn, error) {
	file := os.NewFile(ChildFD, "worker")
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("opening the connection to scaler at file descriptor %d, which only scaler itself gives a worker: %w", ChildFD, err)
	}
	return conn, file.Close()
}

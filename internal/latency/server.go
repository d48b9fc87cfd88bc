package latency

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/podnet"
	"scaler.mesh/scaler/internal/process"
)

// serverStart limits the start of an echo server.
const serverStart = 30 * time.Second

// echoServer is an echo server in a separate process. One goroutine at a time starts or
// kills it.
type echoServer struct {
	spec    process.Spec
	group   *process.Group
	at      serverPlace
	process *process.Process
}

// serverPlace is the address of an echo server.
type serverPlace struct {
	host string // that it listens on
	port int
	pod  *podnet.Pod // nil = this host's network
}

// here returns a port on this host's loopback interface.
func here(port int) serverPlace { return serverPlace{host: "127.0.0.1", port: port} }

// startServer starts an echo server. It forwards requests to next unless that has no
// addresses.
func (r *run) startServer(ctx context.Context, name string, at serverPlace, wait time.Duration, next dataplane.Target) (*echoServer, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding scaler's own program: %w", err)
	}
	args := []string{
		dataplane.EchoCommand, "--listen", net.JoinHostPort(at.host, strconv.Itoa(at.port)), "--name", name,
		"--wait", wait.String(), "--http", strconv.Itoa(r.spec.Latency.HTTP),
	}
	if len(next.Addresses) > 0 {
		args = append(args, "--next", strings.Join(next.Addresses, ","), "--next-host", next.Host)
	}
	s := &echoServer{group: r.group, at: at, spec: process.Spec{
		Name: "echo-" + name, Path: program, Args: args, Log: filepath.Join(r.writer.LogDir(), "echo-"+name+".log"),
	}}
	if at.pod != nil {
		s.spec.Network = at.pod.Network()
	}
	return s, s.start(ctx)
}

// start starts the process and returns when it answers.
func (s *echoServer) start(ctx context.Context) error {
	p, err := s.group.Start(s.spec)
	if err != nil {
		return err
	}
	s.process = p
	ctx, cancel := context.WithTimeout(ctx, serverStart)
	defer cancel()
	dial := new(net.Dialer).DialContext
	if s.at.pod != nil {
		dial = s.at.pod.DialContext
	}
	return p.WaitReady(ctx, func(ctx context.Context) error {
		c, err := dial(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.at.port)))
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// kill kills the process and starts it again at once.
func (s *echoServer) kill(ctx context.Context) error {
	s.process.Kill()
	<-s.process.Done()
	return s.start(ctx)
}

// startPlain starts the variant none: the tiers call each other directly, the servers of
// the next tier in turn.
func (r *run) startPlain(ctx context.Context) (*testbed, error) {
	bed := &testbed{}
	for i := len(r.tiers) - 1; i >= 0; i-- { // the last tier is called by the one before
		tier := r.tiers[i]
		ports, err := process.FreePorts(tier.replicas)
		if err != nil {
			return nil, err
		}
		next := bed.target
		bed.target = dataplane.Target{}
		for n, port := range ports {
			server, err := r.startServer(ctx, fmt.Sprintf("%s-%s-%d", VariantNone, tier.name, n), here(port), tier.wait, next)
			if err != nil {
				return nil, err
			}
			bed.servers = append(bed.servers, server)
			bed.target.Addresses = append(bed.target.Addresses, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		}
	}
	return bed, nil
}

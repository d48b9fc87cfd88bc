// Package sidecar runs real sidecars: an Envoy, with or without an agent, as processes of
// this host, without root and without containers. Each has its own folder and ports and a
// token that is renewed in time, and is restarted when it ends. Its whole configuration,
// including environment variables, comes from an adapter under internal/controlplane by
// way of the caller: this package depends on no control plane. What an Envoy holds is
// read from its admin interface.
//
//	s, err := sidecar.New(sidecar.Options{…})
//	go s.Run(ctx)                        // until ctx is done; ends all it started
//	err = s.AwaitReady(ctx)              // Envoy has taken its first configuration
//	held, err := s.Configuration(ctx)    // clusters, endpoints, listeners, routes; refusals
package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/proxy"
)

const (
	// maxFailures is the number of lives in a row that may end before the sidecar was
	// ready; after that it is given up.
	maxFailures = 5
	// backoff is the wait before the second life. It is doubled after each life that
	// never was ready, up to maxBackoff.
	backoff    = 500 * time.Millisecond
	maxBackoff = 8 * time.Second
	// stopTime limits how long a sidecar may take to end.
	stopTime = 8 * time.Second
)

// Options state how one sidecar runs.
type Options struct {
	// Name is the name of its process in its group, unique there.
	Name string
	// Dir is the sidecar's own folder. It is created if missing, and is the working
	// folder of its processes. It is not removed.
	Dir string
	// Group is the process group that the processes join, so that its cleanup finds them
	// even if this program dies.
	Group *process.Group
	// Log takes what agent and Envoy print.
	Log string
	// Envoy is the path of the real Envoy. The program to start as Envoy is EnvoyIn(Dir),
	// which ensures that no Envoy outlives its parent.
	Envoy string
	// Agent is the path of the agent that starts Envoy; "" means that Envoy is started
	// directly.
	Agent string
	Args  []string // of the agent, or of Envoy where there is none
	Env   []string // the complete environment
	// Files are written before the first start, by path below Dir.
	Files map[string][]byte
	// AdminPort is the port of Envoy's admin interface on 127.0.0.1.
	AdminPort int
	// Network is the network namespace that the processes live in; nil = this program's.
	Network *process.Network
	// Dial connects to the admin interface; nil = from this program's own network
	// namespace.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// User is the id of the user that Envoy runs as, who becomes the owner of the folder
	// and the files; 0 = this program's. It cannot be combined with an Agent.
	User    uint32
	Cluster string // used for ADS
	// Certificate is the name of the secret with the certificate presented to others,
	// received over SDS; "" = there is none.
	Certificate string
	// HoldsSecret reports whether a secret is received over ADS; nil = none is.
	HoldsSecret func(name string) bool
	// TokenFile, below Dir, is the file for the token; "" means that there is none.
	TokenFile string
	// Token is called again when two thirds of a token's life have passed. It may be nil
	// without a TokenFile.
	Token func(context.Context) (proxy.Token, error)

	// Started, if not nil, is called with each life's processes once they run. It
	// must not block.
	Started func(Life)
	// Crashed, if not nil, is called for each end that was not requested. It must
	// not block.
	Crashed func(Crash)
}

// Life is the time of a sidecar between one start and the next.
type Life struct {
	Number  int // from 1
	At      time.Time
	Process process.Handle // the started process: the agent, or Envoy
	Envoy   process.Handle // the same where there is no agent
}

// Crash is an end that was not requested.
type Crash struct {
	At      time.Time
	Process process.Handle // the life's
	Ready   bool           // the sidecar was ready in that life
	Err     error          // with the command and the end of its log
}

// Sidecar is a real one. Make it with New.
type Sidecar struct {
	// fixed after New
	opts    Options
	scaler  string // this program, which calls Exec if its first argument is ExecCommand
	admin   *admin
	backoff time.Duration

	mu      sync.Mutex
	crashes []Crash
	life    Life
	ready   chan struct{} // closed when the sidecar was ready for the first time
	isReady bool          // in this life
	ended   chan struct{} // closed when Run has returned
	err     error         // that it returned
}

// New makes a sidecar, which does not run until Run.
func New(opts Options) (*Sidecar, error) {
	scaler, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding scaler's own program: %w", err)
	}
	if opts.Dir, err = filepath.Abs(opts.Dir); err != nil {
		return nil, fmt.Errorf("finding the folder of sidecar %s: %w", opts.Name, err)
	}
	if opts.TokenFile != "" && opts.Token == nil {
		return nil, fmt.Errorf("making sidecar %s: a token file without a token", opts.Name)
	}
	return &Sidecar{opts: opts, scaler: scaler, admin: newAdmin(opts.AdminPort, opts.Dial), backoff: backoff, ready: make(chan struct{}), ended: make(chan struct{})}, nil
}

// Name returns the Name of its Options.
func (s *Sidecar) Name() string { return s.opts.Name }

// Run starts the sidecar, restarts it when it ends, and stops it when ctx is done; then
// it returns nil. It returns an error if the sidecar cannot be started, or ends
// repeatedly without ever being ready. It is called once.
func (s *Sidecar) Run(ctx context.Context) error {
	err := s.run(ctx)
	s.admin.client.CloseIdleConnections()
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	close(s.ended)
	return err
}

func (s *Sidecar) run(ctx context.Context) error {
	if err := s.prepare(); err != nil {
		return fmt.Errorf("preparing sidecar %s: %w", s.opts.Name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer cancel()
	if s.opts.TokenFile != "" {
		token, err := s.opts.Token(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = s.writeToken(token)
		}
		if err != nil {
			return fmt.Errorf("starting sidecar %s: %w", s.opts.Name, err)
		}
		renewing.Go(func() { s.renew(ctx, token) })
	}
	failures := 0
	for number := 1; ctx.Err() == nil; number++ {
		crash, err := s.live(ctx, number)
		if err != nil || crash == nil {
			return err
		}
		if failures++; crash.Ready {
			failures = 1
		}
		if failures >= maxFailures {
			return fmt.Errorf("sidecar %s ended %d times without having been ready: %w", s.opts.Name, failures, crash.Err)
		}
		task.Sleep(ctx, min(maxBackoff, s.backoff<<(failures-1)))
	}
	return nil
}

// live runs the sidecar once, until it ends. It returns nil, nil if ctx ended it.
func (s *Sidecar) live(ctx context.Context, number int) (*Crash, error) {
	spec := process.Spec{
		Name: s.opts.Name, Path: s.opts.Agent, Args: s.opts.Args, Env: s.opts.Env,
		Dir: s.opts.Dir, Log: s.opts.Log, Network: s.opts.Network, User: s.opts.User,
	}
	if spec.Path == "" {
		spec.Path = s.opts.Envoy
	}
	if err := removePID(s.opts.Dir); err != nil {
		return nil, fmt.Errorf("starting sidecar %s: %w", s.opts.Name, err)
	}
	p, err := s.opts.Group.Start(spec)
	if err != nil {
		return nil, fmt.Errorf("starting sidecar %s: %w", s.opts.Name, err)
	}
	started := s.handle(p)
	life, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(life, p, Life{Number: number, At: time.Now(), Process: started, Envoy: started}) })
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	end()
	watching.Wait()
	if ctx.Err() != nil {
		stopping, cancel := context.WithTimeout(interrupt.Uncancelled(ctx), stopTime)
		defer cancel()
		return nil, p.Stop(stopping)
	}
	s.mu.Lock()
	crash := Crash{At: time.Now(), Process: started, Ready: s.isReady, Err: p.Err()}
	s.isReady = false
	s.crashes = append(s.crashes, crash)
	s.mu.Unlock()
	if s.opts.Crashed != nil {
		s.opts.Crashed(crash)
	}
	return &crash, nil
}

// handle returns a handle to the started process. It has the processor time accounted at
// its end only if that is the process's own: an agent's includes that of the Envoy it has
// waited for (getrusage(2)), which is measured separately.
func (s *Sidecar) handle(p *process.Process) process.Handle {
	if s.opts.Agent == "" {
		return p.Handle()
	}
	return p.Handle().WithoutExitCPU()
}

// watch detects when a life's Envoy runs and when it is ready.
func (s *Sidecar) watch(ctx context.Context, p *process.Process, life Life) {
	err := p.WaitReady(ctx, func(context.Context) (err error) {
		if s.opts.Agent != "" {
			life.Envoy, err = findEnvoy(s.opts.Dir)
		}
		return err
	})
	if err != nil {
		return // ended: live reports it
	}
	s.mu.Lock()
	s.life = life
	s.mu.Unlock()
	if s.opts.Started != nil {
		s.opts.Started(life)
	}
	if p.WaitReady(ctx, s.admin.ready) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isReady = true
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
}

// AwaitReady returns when Envoy has answered that it is live, which means that it has all
// its initial configuration. The error states why that will not happen.
func (s *Sidecar) AwaitReady(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	case <-s.ended:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err != nil {
			return s.err
		}
		return fmt.Errorf("waiting for sidecar %s: it was ended", s.opts.Name)
	case <-ctx.Done():
		err := fmt.Errorf("waiting for sidecar %s: %w", s.opts.Name, context.Cause(ctx))
		if held, _ := s.Configuration(context.WithoutCancel(ctx)); len(held.Refused) > 0 {
			err = fmt.Errorf("%w; Envoy refused %s", err, held.Refused[0])
		}
		return err
	}
}

// Crashes returns the ends so far that were not requested, in order.
func (s *Sidecar) Crashes() []Crash {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Crash(nil), s.crashes...)
}

// Life returns the current life, or the last one; zero before the first.
func (s *Sidecar) Life() Life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// prepare makes the folder and its files.
func (s *Sidecar) prepare() error {
	for name, text := range s.opts.Files {
		if err := writeFile(filepath.Join(s.opts.Dir, name), text, 0o600); err != nil {
			return err
		}
	}
	if err := wrapEnvoy(s.opts.Dir, s.scaler, s.opts.Envoy); err != nil || s.opts.User == 0 {
		return err
	}
	return filepath.WalkDir(s.opts.Dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, int(s.opts.User), int(s.opts.User)))
	})
}

// renew replaces the token in time. It retries while the API server is unavailable.
func (s *Sidecar) renew(ctx context.Context, token proxy.Token) {
	const retry = 10 * time.Second
	wait := time.Until(token.Expires) * 2 / 3
	for task.Sleep(ctx, max(retry, wait)) {
		wait = retry
		token, err := s.opts.Token(ctx)
		if err == nil {
			err = s.writeToken(token)
		}
		if err == nil {
			wait = time.Until(token.Expires) * 2 / 3
		}
	}
}

// writeToken replaces the file at once: an agent may read it at any time.
func (s *Sidecar) writeToken(token proxy.Token) error {
	if err := replaceFile(filepath.Join(s.opts.Dir, s.opts.TokenFile), []byte(token.Value), 0o600, s.opts.User); err != nil {
		return fmt.Errorf("writing the token: %w", err)
	}
	return nil
}

// replaceFile writes a file and puts it in the place of an older one. It belongs to the user; 0 = this program's.
func replaceFile(path string, text []byte, mode os.FileMode, user uint32) error {
	err := writeFile(path+".new", text, mode)
	if err == nil && user > 0 {
		err = os.Chown(path+".new", int(user), int(user))
	}
	if err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func writeFile(path string, text []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, mode)
}

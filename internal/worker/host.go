package worker

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/proxy"
)

// reportInterval is the interval at which an idle worker reports its counters and its
// scheduling lag.
const reportInterval = time.Second

// HostOptions configures a process that runs proxies for another one. All fields
// but Metrics are needed.
type HostOptions struct {
	Build   string                                  // of scaler; the other end must have the same
	Drivers []controlplane.Driver                   // that it knows
	Keys    func() (crypto.Signer, error)           // private keys for certificates
	Tokens  func(kubeconfig string) (Tokens, error) // for the cluster of a file, or OwnCluster
	Metrics *measure.Metrics                        // count what the proxies do; nil = nothing does
}

// Tokens is controlplane.ProxyServices.Tokens.
type Tokens = func(proxy.TokenRequest) proxy.TokenSource

// host is the end of the connection at which the proxies run.
type host struct {
	options HostOptions
	conn    net.Conn
	encoder *encoder
	shared  [][]byte // by specifications; only by the goroutine that reads

	mu      sync.Mutex
	local   *Local           // nil before Setup
	pending batch            // answers that are due
	late    *stats.Histogram // since the last batch that had one
}

// Serve runs proxies for the process at the other end of conn, until that sends
// Close, the connection ends or ctx does. It closes conn.
func Serve(ctx context.Context, conn net.Conn, o HostOptions) error {
	h := &host{options: o, conn: conn, encoder: newEncoder(), late: stats.NewHistogram()}
	group, life := errgroup.WithContext(ctx)
	defer context.AfterFunc(life, func() { _ = conn.Close() })()
	group.Go(func() error { return h.read(life) })
	group.Go(func() error { return h.write(life) })
	group.Go(func() error { return measure.NewLag(h.ranLate).Run(life) })
	err := group.Wait()
	if local := h.worker(); local != nil {
		_ = local.Close(ctx) // never fails
	}
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// errDone reports that the proxies were closed and the other end was told.
var errDone = errors.New("done")

// worker runs the proxies; nil before Setup.
func (h *host) worker() *Local {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.local
}

// ranLate records one scheduling delay of this process.
func (h *host) ranLate(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.late.Record(d)
}

// read executes commands until the other end closes the connection.
func (h *host) read(ctx context.Context) error {
	decoder := gob.NewDecoder(bufio.NewReader(h.conn))
	for closed := false; ; {
		var c command
		if err := decoder.Decode(&c); err != nil && closed {
			return errDone
		} else if err != nil {
			return fmt.Errorf("reading a command: %w", err)
		}
		closed = closed || c.Close
		arrived := h.encoder.at(time.Now())
		if err := h.do(ctx, &c, arrived); err != nil {
			h.failed(err)
		}
	}
}

// answer adds an answer to the next batch.
func (h *host) answer(set func(*batch)) {
	h.mu.Lock()
	set(&h.pending)
	h.mu.Unlock()
	task.Notify(h.encoder.more)
}

// failed adds an error to the next batch, unless it has one.
func (h *host) failed(err error) {
	h.answer(func(b *batch) { b.Failed = cmp.Or(b.Failed, err.Error()) })
}

// do executes a command.
func (h *host) do(ctx context.Context, c *command, arrived time.Duration) error {
	if c.Setup != nil {
		if err := h.setUp(ctx, c.Setup); err != nil {
			return err
		}
		h.answer(func(b *batch) { b.Ready = true })
	}
	local := h.worker()
	if local == nil {
		return errors.New("reading a command: it came before the setup")
	}
	h.shared = append(h.shared, c.Shared...)
	for _, s := range c.Start {
		if err := h.start(local, s); err != nil {
			return err
		}
	}
	if c.Do != nil {
		local.Do(c.Do.Action, c.Do.IDs...)
	}
	if c.Route != nil {
		local.Route(c.Route.Service, c.Route.Endpoints)
	}
	if c.Ping != 0 {
		h.answer(func(b *batch) { b.Pong = pong{Number: c.Ping, Arrived: arrived} })
	}
	if c.Holdings != nil {
		h.holdings(ctx, local, c.Holdings)
	}
	if c.Close {
		_ = local.Close(ctx) // never fails
		h.answer(func(b *batch) { b.Closed = true })
	}
	return nil
}

// setUp makes the worker.
func (h *host) setUp(ctx context.Context, s *Setup) error {
	if s.Build != h.options.Build {
		return fmt.Errorf("worker %s is scaler %s, want %s", s.Name, h.options.Build, s.Build)
	}
	at := slices.IndexFunc(h.options.Drivers, func(d controlplane.Driver) bool { return d.Name == s.Driver })
	if at < 0 {
		return fmt.Errorf("worker %s does not know the control plane %s", s.Name, s.Driver)
	}
	driver, err := h.options.Drivers[at].Of(s.Dataplane, s.Waypoints)
	if err != nil {
		return err
	}
	services := controlplane.ProxyServices{Keys: h.options.Keys}
	if s.Kubeconfig != "" {
		if services.Tokens, err = h.options.Tokens(s.Kubeconfig); err != nil {
			return err
		}
	}
	var observer proxy.Observer = h.encoder
	if h.options.Metrics != nil {
		observer = counted{observer, h.options.Metrics}
	}
	local, err := NewLocal(ctx, Options{Name: s.Name, Observer: observer, Failed: h.failed}, driver, services)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.local = local
	return nil
}

// start starts one proxy.
func (h *host) start(local *Local, s start) error {
	p := Proxy{Delay: s.Delay}
	if err := json.Unmarshal(s.Spec, &p.Spec); err != nil {
		return fmt.Errorf("reading the specification of a proxy: %w", err)
	}
	if max(s.Build, s.Roots) > len(h.shared) {
		return fmt.Errorf("reading the specification of the proxy of pod %s: it refers to what was never sent", p.ID)
	}
	if s.Build > 0 {
		p.Build = h.shared[s.Build-1]
	}
	if s.Roots > 0 {
		p.RootPEM = h.shared[s.Roots-1]
	}
	h.encoder.number(p.ID, s.Number)
	return local.Start(p)
}

// holdings answers with the holdings of the proxies. The goroutine that writes numbers their keys.
func (h *host) holdings(ctx context.Context, local *Local, q *holdingsQuery) {
	all, _ := local.Holdings(ctx, q.Names) // never fails
	h.answer(func(b *batch) { b.Holdings = append(b.Holdings, holdingsAnswer{Number: q.Number, raw: all}) })
}

// write sends a batch whenever there is something to send, and each second.
func (h *host) write(ctx context.Context) error {
	out := bufio.NewWriter(h.conn)
	encoder := gob.NewEncoder(out)
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	for {
		due := false
		select {
		case <-h.encoder.more:
		case <-tick.C:
			due = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		b := h.next(due)
		if err := encoder.Encode(b); err != nil {
			return fmt.Errorf("sending a batch: %w", err)
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("sending a batch: %w", err)
		}
		if b.Closed {
			return nil // the other end closes the connection when it has that
		}
	}
}

// next makes the next batch, with the scheduling lag of the process if that is due or the batch is the
// last one.
func (h *host) next(due bool) *batch {
	h.mu.Lock()
	b, local := h.pending, h.local
	h.pending = batch{}
	if (due || b.Closed) && h.late.Summary().Count > 0 {
		var text bytes.Buffer
		if _, err := h.late.WriteTo(&text); err == nil { // into memory
			b.Late, h.late = text.Bytes(), stats.NewHistogram()
		}
	}
	h.mu.Unlock()
	// After the answers were taken: events before an answer are in its batch.
	h.encoder.take(&b)
	h.encoder.holdings(&b)
	if local != nil {
		s := local.State()
		b.Started, b.Counts = s.Started, s.Counts
		if h.options.Metrics != nil {
			h.options.Metrics.Proxies(s.Started)
		}
	}
	if b.Pong.Number != 0 {
		b.Pong.Answered = h.encoder.at(time.Now())
	}
	return &b
}

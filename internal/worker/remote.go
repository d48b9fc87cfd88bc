package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

const (
	// pings is the number of exchanges before the first proxy: the quickest determines the
	// other clock best.
	pings        = 16
	pingInterval = time.Second
)

// Remote runs proxies in another process, which serves the other end of a connection.
type Remote struct {
	// fixed after Connect
	options Options
	conn    net.Conn
	clock   *clock
	more    chan struct{} // there are commands to be sent
	ready   chan struct{} // closed by the answer to Setup
	ended   chan struct{} // closed when nothing more is received
	decoder *decoder      // only by the goroutine that reads, like what it calls

	pumping sync.WaitGroup

	mu       sync.Mutex
	commands []command             // to be sent
	shared   map[string]int        // numbers of what specifications have in common
	sent     map[int]time.Duration // when pings were
	ping     int
	ponged   chan struct{} // takes a notice of each answer to a ping
	query    int
	answers  map[int]chan<- held
	started  int
	counts   xdsprobe.Counts

	connected bool  // Connect has returned the worker
	closed    bool  // all proxies have ended
	failure   error // why the connection ended
}

// held is the answer to a query of holdings.
type held struct {
	all []Holding
	err error
}

var _ Worker = (*Remote)(nil)

// Connect makes a worker of the process at the other end of conn, which runs Serve. It
// returns when that process is set up, and the difference of the clocks is known. It owns
// conn, also if it fails.
func Connect(ctx context.Context, conn net.Conn, s Setup, o Options) (*Remote, error) {
	w := &Remote{
		options: o, conn: conn, clock: newClock(),
		more: make(chan struct{}, 1), ready: make(chan struct{}), ended: make(chan struct{}), ponged: make(chan struct{}, pings),
		sent: map[int]time.Duration{}, answers: map[int]chan<- held{}, shared: map[string]int{},
	}
	w.decoder = &decoder{clock: w.clock, observer: o.Observer, ids: &ids{}}
	w.pumping.Go(w.write)
	w.pumping.Go(w.read)
	s.Name = o.Name
	w.send(command{Setup: &s})
	if err := w.begin(ctx); err != nil {
		_ = conn.Close()
		w.pumping.Wait()
		return nil, err
	}
	w.mu.Lock()
	w.connected = true
	w.mu.Unlock()
	w.pumping.Go(w.keepTime)
	return w, nil
}

// begin waits for the setup and compares the clocks.
func (w *Remote) begin(ctx context.Context) error {
	if err := w.await(ctx, w.ready); err != nil {
		return fmt.Errorf("setting up worker %s: %w", w.options.Name, err)
	}
	for range pings {
		w.sendPing()
		if err := w.await(ctx, w.ponged); err != nil {
			return fmt.Errorf("comparing clocks with worker %s: %w", w.options.Name, err)
		}
	}
	return nil
}

// await waits for an answer of the other end.
func (w *Remote) await(ctx context.Context, what <-chan struct{}) error {
	select {
	case <-what:
		return nil
	case <-w.ended:
		return w.err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// err returns why the connection ended.
func (w *Remote) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

// send queues commands, in their order.
func (w *Remote) send(c command) {
	w.mu.Lock()
	w.commands = append(w.commands, c)
	w.mu.Unlock()
	task.Notify(w.more)
}

// sendPing queries the clock of the other end.
func (w *Remote) sendPing() {
	w.mu.Lock()
	w.ping++
	n := w.ping
	w.mu.Unlock()
	w.send(command{Ping: n})
}

// keepTime compares the clocks at an interval until the connection ends.
func (w *Remote) keepTime() {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.sendPing()
		case <-w.ended:
			return
		}
	}
}

// write sends commands until the connection ends. An error of it is reported by the goroutine
// that reads, which finds the connection closed.
func (w *Remote) write() {
	out := bufio.NewWriter(w.conn)
	encoder := gob.NewEncoder(out)
	for {
		select {
		case <-w.more:
		case <-w.ended:
			return
		}
		w.mu.Lock()
		commands := w.commands
		w.commands = nil
		w.mu.Unlock()
		for i := range commands {
			if n := commands[i].Ping; n != 0 {
				w.mu.Lock()
				w.sent[n] = w.clock.now()
				w.mu.Unlock()
			}
			if encoder.Encode(&commands[i]) != nil || out.Flush() != nil {
				_ = w.conn.Close()
				return
			}
		}
	}
}

// read takes batches until the connection ends, or all is closed.
func (w *Remote) read() {
	defer close(w.ended)
	defer w.conn.Close()
	decoder := gob.NewDecoder(bufio.NewReader(w.conn))
	for {
		var b batch
		err := decoder.Decode(&b)
		if err == nil {
			err = w.take(&b, w.clock.now())
		}
		if err == nil && !b.Closed {
			continue
		}
		w.mu.Lock()
		w.closed, w.failure = err == nil, err
		lost := w.connected && err != nil
		w.mu.Unlock()
		if lost {
			report := w.options.Failed
			if w.options.Lost != nil {
				report = w.options.Lost
			}
			report(fmt.Errorf("worker %s is lost: %w", w.options.Name, err))
		}
		return
	}
}

// take processes a batch that was received at a moment.
func (w *Remote) take(b *batch, received time.Duration) error {
	if n := b.Pong.Number; n != 0 {
		w.mu.Lock()
		sent := w.sent[n]
		delete(w.sent, n)
		w.mu.Unlock()
		w.clock.exchange(sent, b.Pong.Arrived, b.Pong.Answered, received)
		select {
		case w.ponged <- struct{}{}:
		default: // nobody waits
		}
	}
	if b.Failed != "" {
		if err := w.fail(errors.New(b.Failed)); err != nil {
			return err
		}
	}
	if b.Ready {
		close(w.ready)
	}
	if err := w.decoder.take(b); err != nil {
		return err
	}
	if b.Late != nil {
		late, err := stats.ReadHistogram(bytes.NewReader(b.Late))
		if err != nil {
			return err
		}
		w.options.Late(late)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started, w.counts = b.Started, b.Counts
	for i := range b.Holdings {
		a := &b.Holdings[i]
		if answer := w.answers[a.Number]; answer != nil {
			all, err := w.decoder.holdings(a)
			answer <- held{all, err} // has room
		}
		delete(w.answers, a.Number)
	}
	return nil
}

// fail takes an error of the other end. Before it is set up, the error ends the connection.
func (w *Remote) fail(err error) error {
	select {
	case <-w.ready:
		w.options.Failed(err)
		return nil
	default:
		return err
	}
}

// ids holds the ids of the proxies that were started, by their numbers from 1.
type ids struct {
	mu  sync.Mutex
	all []string
}

// add numbers an id.
func (i *ids) add(id string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = append(i.all, id)
	return len(i.all)
}

// of returns the id of a number; "" if there is none.
func (i *ids) of(number int) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if number < 1 || number > len(i.all) {
		return ""
	}
	return i.all[number-1]
}

// Start is part of Worker. An invalid specification is reported by the other end, to Options.Failed.
func (w *Remote) Start(p Proxy) error {
	build, roots := p.Build, p.RootPEM
	p.Build, p.RootPEM = nil, nil
	spec, err := json.Marshal(p.Spec)
	if err != nil {
		return fmt.Errorf("writing the specification of the proxy of pod %s: %w", p.ID, err)
	}
	s := start{Number: w.decoder.ids.add(p.ID), Spec: spec, Delay: p.Delay}
	w.mu.Lock()
	var c command
	s.Build, s.Roots = w.share(&c, build), w.share(&c, roots)
	c.Start = []start{s}
	w.commands = append(w.commands, c)
	w.mu.Unlock()
	task.Notify(w.more)
	return nil
}

// share returns the number of bytes that many specifications have in common, and adds new
// ones to the command; 0 for nil. The caller holds mu, and queues the command.
func (w *Remote) share(c *command, b []byte) int {
	if b == nil {
		return 0
	}
	n, ok := w.shared[string(b)]
	if !ok {
		n = len(w.shared) + 1
		w.shared[string(b)] = n
		c.Shared = append(c.Shared, b)
	}
	return n
}

// Do is part of Worker.
func (w *Remote) Do(action Action, ids ...string) {
	if len(ids) > 0 {
		w.send(command{Do: &do{action, ids}})
	}
}

// Route is part of Worker.
func (w *Remote) Route(service string, endpoints []string) {
	w.send(command{Route: &route{service, endpoints}})
}

// Holdings is part of Worker.
func (w *Remote) Holdings(ctx context.Context, names bool) ([]Holding, error) {
	answer := make(chan held, 1)
	w.mu.Lock()
	w.query++
	n := w.query
	w.answers[n] = answer
	w.mu.Unlock()
	w.send(command{Holdings: &holdingsQuery{n, names}})
	select {
	case a := <-answer:
		return a.all, a.err
	case <-w.ended:
		return nil, fmt.Errorf("reading what the proxies of worker %s hold: %w", w.options.Name, w.err())
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// State is part of Worker.
func (w *Remote) State() State {
	var clock Clock
	clock.Offset, clock.Uncertainty = w.clock.estimate()
	w.mu.Lock()
	defer w.mu.Unlock()
	return State{Name: w.options.Name, Started: w.started, Counts: w.counts, Clock: clock}
}

// Close is part of Worker.
func (w *Remote) Close(ctx context.Context) error {
	w.send(command{Close: true})
	defer w.pumping.Wait()
	defer w.conn.Close()
	select {
	case <-w.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		return fmt.Errorf("closing worker %s: %w", w.options.Name, w.failure)
	}
	return nil
}

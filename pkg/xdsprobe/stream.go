package xdsprobe

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/onecall"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// stream is one ADS stream of a sidecar, from its first request to its end.
type stream struct {
	conn   *onecall.Conn
	client *Client
	end    *proxy.StreamEnded // to be; responses are counted in it

	timeout  task.Task // ends the wait for resources that do not arrive
	draining task.Task // drops what has drained

	// mu is held while the sidecar's state changes and requests are sent: by the
	// goroutine that receives, or by one of the tasks.
	mu      sync.Mutex
	waiting wait // what timeout is scheduled for
}

// errSend means that a request could not be sent.
var errSend = errors.New("sending a request")

// serve sends the first requests and then processes the responses. It returns the error
// that ended the stream, io.EOF if the server closed it.
func (s *stream) serve() error {
	defer s.timeout.Stop()
	defer s.draining.Stop()
	err := s.first()
	for err == nil {
		var r response
		if r.buffer, err = s.conn.Receive(); err == nil {
			r.receivedAt, r.size = time.Now(), r.buffer.Len()
			s.end.Responses++
			s.client.store.counters.wait(s.conn.Waited())
			err = s.answer(&r)
		}
	}
	if errors.Is(err, errSend) { // receiving returns why
		err = s.drain()
	}
	return err
}

// first sends the first requests.
func (s *stream) first() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client.giveUpDrained() // everything subscribed to is requested anew
	steps := s.client.state.open()
	s.scheduleDrained()
	for i := range steps {
		if i == 0 || s.client.config.NodeInEach {
			steps[i].request.node, steps[i].request.build = s.client.node, s.client.config.Build
		}
	}
	if err := s.send(steps[:1]); err != nil {
		s.client.state.lose(steps[1:])
		return err
	}
	s.client.opened(s.end, time.Now())
	s.wait()
	return s.send(steps[1:])
}

// answer processes a response, sends the resulting requests, and frees the response.
func (s *stream) answer(r *response) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer r.release()
	c := s.client
	if err := r.parse(r.buffer.ReadOnlyData(), c.config.Variant); err != nil {
		return fmt.Errorf("reading a response: %w", err)
	}
	c.backoff.reset() // as Envoy does, with each response
	k := c.store.types.byURL(r.typeURL)
	var t convergence.Type // none if it is not subscribed to
	if k != nil {
		t = k.Name
	}
	c.store.counters.Received(t, r.size)

	c.holding.Lock()
	steps := c.state.receive(k, r)
	c.holding.Unlock()
	s.wait()
	s.scheduleDrained()
	if err := s.send(steps); err != nil {
		return err
	}
	if c.config.OnSecret != nil && t == convergence.SDS {
		c.reportSecrets(k, steps)
	}
	return nil
}

// reportSecrets calls OnSecret with the certificates that a response changed.
func (s *Client) reportSecrets(k *kind, steps []step) {
	for i := range steps {
		for _, u := range steps[i].updates {
			if u.Type != k.Name {
				continue
			}
			for _, r := range u.Set {
				held := s.state.tables[k.index].held
				if at, ok := find(held, r.Name); ok && held[at].secret != nil {
					s.config.OnSecret(r.Name, held[at].secret, s.state.secrets.answered[r.Name], u.ReceivedAt)
				}
			}
		}
	}
}

// certified sends what waited only for the certificate.
func (s *stream) certified() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.send(s.client.state.proceed(nil)) // an error ends the stream
}

// wait schedules the end of a limited wait when it begins, and cancels it when it is
// over.
func (s *stream) wait() {
	limit, what := s.client.state.waitLimit()
	if what == s.waiting {
		return
	}
	s.waiting = what
	if what == forNothing {
		s.timeout.Cancel()
		return
	}
	s.timeout.After(s.client.config.Slowdown.Of(limit), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting == what {
			s.waiting = forNothing
			_ = s.send(s.client.state.giveUp(what)) // an error ends the stream
		}
	})
}

// send sends requests together, and reports the updates that they acknowledge. Updates
// whose requests could not be sent go back to the state.
func (s *stream) send(steps []step) error {
	if len(steps) == 0 {
		return nil
	}
	if err := s.request(steps); err != nil {
		s.client.state.lose(steps)
		return fmt.Errorf("%w: %w", errSend, err)
	}
	now := time.Now()
	for i := range steps {
		for j, u := range steps[i].updates {
			u.AckedAt = now
			if i == len(steps)-1 && j == len(steps[i].updates)-1 {
				u.Complete = s.client.state.complete()
			}
			s.client.report(u)
		}
	}
	return nil
}

// encoded holds encoded requests: the bytes of all in one buffer, and a slice for each.
type encoded struct {
	bytes []byte
	each  [][]byte
}

// scratch lends them.
var scratch = sync.Pool{New: func() any { return new(encoded) }}

// request encodes and sends the requests of steps.
func (s *stream) request(steps []step) error {
	lent, _ := scratch.Get().(*encoded)
	defer scratch.Put(lent)
	lent.bytes, lent.each = lent.bytes[:0], lent.each[:0]
	for i := range steps {
		begin := len(lent.bytes)
		lent.bytes = steps[i].request.append(lent.bytes, s.client.config.Variant)
		lent.each = append(lent.each, lent.bytes[begin:]) // of a smaller array perhaps, which holds it still
	}
	return s.conn.Send(lent.each...)
}

// drain receives until the stream returns the reason for its end.
func (s *stream) drain() error {
	for {
		buffer, err := s.conn.Receive()
		if err != nil {
			return err
		}
		buffer.Free()
	}
}

package dataplane

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// What can go wrong with a request.
const (
	problemConnect   = "connect"
	problemTimeout   = "timeout"
	problemClosed    = "closed" // the connection ended before the answer did
	problemMalformed = "malformed"
	problemStatus    = "status " // and the number
)

// problemOf returns the name of a status that is not a success; "" for a success.
func problemOf(status int) string {
	if status >= 200 && status < 300 {
		return ""
	}
	return problemStatus + strconv.Itoa(status)
}

// http1 calls over HTTP/1.1 connections, with one request on each at a time. The caller,
// which follows the schedule, writes the request itself, so that no other goroutine has
// to run first. The write cannot block, because nothing else is in flight on that
// connection. The connection's own goroutine reads the answer.
type http1 struct {
	// fixed after start
	load  Load
	sink  *sink
	heads [][]byte // by address
	ctx   context.Context
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu    sync.Mutex
	next  int       // address to call
	idle  [][]*conn // by address; the last used is the next
	open  []*conn   // all that are connected
	count int       // of those, and of those being dialled
	most  int       // that count ever was
	under int       // requests under way
}

// conn is one connection. All fields except net are guarded by http1.mu.
type conn struct {
	net     net.Conn
	address int
	place   int           // in http1.open
	busy    bool          // a request is under way
	due     time.Duration // when it was
}

func newHTTP1(ctx context.Context, l Load, s *sink) *http1 {
	h := &http1{load: l, sink: s, idle: make([][]*conn, len(l.Target.Addresses))}
	for _, a := range l.Target.Addresses {
		h.heads = append(h.heads, l.Target.head(a, !l.NoKeepalive))
	}
	h.ctx, h.stop = context.WithCancel(ctx)
	h.ended.Go(h.reap)
	return h
}

// call limits the requests in flight, not the connections: an idle connection to another
// address is kept for that address's next turn. If it were closed, runs with several
// addresses would pay for handshakes that runs with one address do not need.
func (h *http1) call(due time.Duration) bool {
	h.sink.came(due)
	h.mu.Lock()
	if h.under == h.load.Connections {
		h.mu.Unlock()
		return false
	}
	h.under++
	address := h.next
	h.next = (h.next + 1) % len(h.idle)
	if n := len(h.idle[address]); n > 0 {
		c := h.idle[address][n-1]
		h.idle[address] = h.idle[address][:n-1]
		c.busy, c.due = true, due
		h.mu.Unlock()
		h.write(c)
		return true
	}
	h.count++
	h.most = max(h.most, h.count)
	h.mu.Unlock()
	h.ended.Go(func() { h.connect(address, due) })
	return true
}

// write sends the request. The reader notices errors.
func (h *http1) write(c *conn) {
	if _, err := c.net.Write(h.heads[c.address]); err != nil {
		c.net.Close()
	}
}

// connect dials for a request, and then reads until the connection ends.
func (h *http1) connect(address int, due time.Duration) {
	ctx, cancel := context.WithDeadline(h.ctx, h.sink.start.Add(due+h.load.Timeout))
	defer cancel()
	n, err := h.load.Dial(ctx, "tcp", h.load.Target.Addresses[address])
	h.mu.Lock()
	if err == nil && h.ctx.Err() != nil {
		n.Close()
		err = h.ctx.Err()
	}
	if err != nil {
		h.count--
		h.under--
		h.mu.Unlock()
		problem := problemConnect
		if errors.Is(err, context.DeadlineExceeded) {
			problem = problemTimeout
		}
		h.sink.done(due, problem)
		return
	}
	c := &conn{net: n, address: address, place: len(h.open), busy: true, due: due}
	h.open = append(h.open, c)
	h.mu.Unlock()
	h.write(c)
	h.read(c)
}

// read reads answers until the connection ends.
func (h *http1) read(c *conn) {
	r := bufio.NewReaderSize(c.net, lineLimit)
	for {
		answer, err := readResponse(r)
		problem := problemOf(answer.status)
		if err != nil {
			problem = problemClosed
		}
		if errors.Is(err, errMalformed) {
			problem = problemMalformed
		}
		h.mu.Lock()
		due, busy := c.due, c.busy
		// It is read under mu, as in reap: a request whose connection reap closed counts
		// as late here.
		late := busy && h.sink.now()-due > h.load.Timeout
		if late {
			problem = problemTimeout
		}
		// Bytes after an answer, without a request, could be mistaken for the next
		// answer.
		again := err == nil && busy && answer.reusable && !h.load.NoKeepalive && !late && r.Buffered() == 0 && h.ctx.Err() == nil
		if busy {
			h.under--
		}
		c.busy = false
		if again {
			h.idle[c.address] = append(h.idle[c.address], c)
		} else {
			h.drop(c)
		}
		h.mu.Unlock()
		if !again {
			c.net.Close()
		}
		if busy {
			h.sink.done(due, problem)
		}
		if !again {
			return
		}
	}
}

// drop removes a connection, which may be idle, from all counts. The caller holds mu.
func (h *http1) drop(c *conn) {
	if i := slices.Index(h.idle[c.address], c); i >= 0 {
		h.idle[c.address] = slices.Delete(h.idle[c.address], i, i+1)
	}
	last := len(h.open) - 1
	h.open[c.place] = h.open[last]
	h.open[c.place].place = c.place
	h.open = h.open[:last]
	h.count--
}

// reapEvery is the interval at which requests past their timeout are given up. An answer
// that arrives after the timeout, but before that, is still too late.
const reapEvery = 20 * time.Millisecond

// reap closes the connections whose requests timed out. A deadline for each request would
// cost more.
func (h *http1) reap() {
	ticker := time.NewTicker(reapEvery)
	defer ticker.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-ticker.C:
		}
		now := h.sink.now()
		h.mu.Lock()
		for _, c := range h.open {
			if c.busy && now-c.due > h.load.Timeout {
				c.net.Close()
			}
		}
		h.mu.Unlock()
	}
}

func (h *http1) abort() {
	h.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.open {
		c.net.Close()
	}
}

func (h *http1) close() {
	h.abort()
	h.ended.Wait()
}

func (h *http1) connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.most
}

package onecall

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// budgetSize limits the bytes of messages, over all connections, that are being
	// received or read. A push to a thousand sidecars reaches all of them at once;
	// without a limit most of the process's memory would be partly received messages.
	// Whatever must wait stays in the sockets.
	budgetSize = 8 << 20
	// free is the size of messages that need no budget.
	free = 16 << 10
	// budgetTimeout limits how long a message waits for the budget: a server that stops
	// in the middle of other messages must not block it for ever.
	budgetTimeout = 10 * time.Second
)

var budget = semaphore.NewWeighted(budgetSize)

// take waits until the budget allows to receive a message of n bytes.
func (c *Conn) take(n int) {
	c.waited = 0
	if n <= free {
		return
	}
	weight := min(int64(1)<<(smallest+class(n)), budgetSize)
	if !budget.TryAcquire(weight) {
		ctx, cancel := context.WithTimeout(c.ctx, budgetTimeout)
		defer cancel()
		begin := time.Now()
		err := budget.Acquire(ctx, weight)
		c.waited = time.Since(begin)
		if err != nil {
			return // without
		}
	}
	c.taken = weight
}

// Waited returns how long the message that Receive returned last waited for the budget,
// after its length was known: at most 10 s, and 0 if it did not wait. Without the wait
// the message would have been received at most that much earlier, because its last byte
// may have arrived in the meantime or later. Anything behind it on the connection waited
// as long. It must be called by the goroutine that calls Receive.
func (c *Conn) Waited() time.Duration { return c.waited }

// giveBack returns a message's budget. It is called when the message has been read, or
// will not arrive.
func (c *Conn) giveBack() {
	if c.taken > 0 {
		budget.Release(c.taken)
		c.taken = 0
	}
}

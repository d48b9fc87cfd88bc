package onecall

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// budgetSize is how many bytes the messages may have, over all connections,
	// that are being received or read. A push to a thousand sidecars comes to all
	// of them at once; without a bound most of a process's memory would be
	// messages of which a part has come. What must wait stays in the sockets.
	budgetSize = 8 << 20
	// free is the size of messages that need no budget.
	free = 16 << 10
	// budgetTimeout is how long a message waits at most: a server that stops in the
	// middle of others must not keep it for ever.
	budgetTimeout = 10 * time.Second
)

var budget = semaphore.NewWeighted(budgetSize)

// take waits until a message of n bytes may be received.
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

// Waited is how long the message that Receive returned last was left where it was,
// with its length known, because others had the memory that is given to messages
// being received: 10 s at most, and 0 if it did not wait. Had it not waited it would
// have been received earlier by that time or less, for its last byte may have come
// meanwhile or after. What came behind it on the connection was left there as long.
// It is for who receives.
func (c *Conn) Waited() time.Duration { return c.waited }

// giveBack is called when a message has been read, or will not come.
func (c *Conn) giveBack() {
	if c.taken > 0 {
		budget.Release(c.taken)
		c.taken = 0
	}
}

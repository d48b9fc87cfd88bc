package xdsprobe

import (
	"fmt"
	"time"

	"google.golang.org/grpc/mem"
)

// codec hands requests and responses to gRPC as the bytes they are.
type codec struct {
	variant Variant
	pool    mem.BufferPool
}

// Name is that of the codec that it stands in for: the bytes are protobuf.
func (codec) Name() string { return "proto" }

// Marshal encodes a *request.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(*request)
	if !ok {
		return nil, fmt.Errorf("encoding a %T: want a request", v)
	}
	b := c.pool.Get(r.size())
	*b = r.append((*b)[:0], c.variant)
	return mem.BufferSlice{mem.NewBuffer(b, c.pool)}, nil
}

// Unmarshal takes the bytes of a response, which is read later: the buffer is
// freed by whoever does. What gRPC received is not copied if it is in one piece.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*response)
	if !ok {
		return fmt.Errorf("decoding a %T: want a response", v)
	}
	r.receivedAt = time.Now()
	r.buffer = data.MaterializeToBuffer(c.pool)
	r.size = r.buffer.Len()
	return nil
}

package wiretap

import (
	"fmt"
	"io"

	"google.golang.org/grpc/mem"
)

// errEnd is the result of a call that its server ended without an error.
var errEnd = io.EOF

// frame is one message as the bytes it is.
type frame []byte

// codec passes messages to and from gRPC without decoding them.
type codec struct{}

// Name returns the name of the codec that this one replaces: the bytes are protobuf.
func (codec) Name() string { return "proto" }

// Marshal gives the bytes of a *frame.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("encoding a %T: want a frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*f)}, nil
}

// Unmarshal keeps a copy of the bytes.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("decoding a %T: want a frame", v)
	}
	*f = data.Materialize()
	return nil
}

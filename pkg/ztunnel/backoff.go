package ztunnel

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"scaler.mesh/scaler/pkg/proxy"
)

// Bounds of the wait before a stream is tried again.
const (
	initialBackoff = 10 * time.Millisecond
	maxBackoff     = 15 * time.Second
)

// backoff is ztunnel's wait before a stream is tried again: twice the last one, without
// jitter, after an attempt on which nothing came and after a refusal; the least after a
// stream that was lost; none after one that the server ended without an error.
type backoff struct{ last time.Duration } // 0 means initialBackoff

func (b *backoff) next(end proxy.StreamEnded) time.Duration {
	switch {
	case end.Responses > 0 && end.Err == nil:
		b.last = initialBackoff
		return 0
	case end.Responses > 0 && passing(end):
		b.last = initialBackoff
	default:
		b.last = min(maxBackoff, 2*max(b.last, initialBackoff))
	}
	return b.last
}

// passing reports whether a stream ended in a way that the next one need not. A connection
// that broke is Unavailable here, and Unknown to ztunnel.
func passing(end proxy.StreamEnded) bool {
	switch status.Code(end.Err) {
	case codes.Unknown, codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		return true
	}
	return false
}

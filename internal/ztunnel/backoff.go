package ztunnel

import (
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"scaler.mesh/scaler/pkg/proxy"
)

// Bounds of the wait before a stream is retried.
const (
	initialBackoff = 10 * time.Millisecond
	maxBackoff     = 15 * time.Second
)

// backoff computes ztunnel's wait before it retries a stream (run_loop in
// src/xds/client.rs). A stream that ended without an error is retried at once. After an
// attempt without a response and after an error the wait is twice the last one, without
// jitter. After an error that passing regards as a reconnect it is the shortest wait.
type backoff struct{ last time.Duration } // 0 means initialBackoff

// next returns the wait after an attempt. answered is true if the server ended the
// attempt with a status.
func (b *backoff) next(end proxy.StreamEnded, answered bool) time.Duration {
	switch {
	case end.Err == nil:
		b.last = initialBackoff
		return 0
	case end.Responses > 0 && passing(end.Err, answered):
		b.last = initialBackoff
	default:
		b.last = min(maxBackoff, 2*max(b.last, initialBackoff))
	}
	return b.last
}

// reconnects are the messages of the only Unavailable errors that ztunnel treats as a
// reconnect.
var reconnects = []string{"transport is closing", "received prior goaway"}

// passing reports whether ztunnel regards the error of a stream that had responses as a
// reconnect. A connection that broke is Unavailable here; tonic, ztunnel's gRPC library,
// reports it as Unknown (code_from_h2 in tonic/src/status.rs).
func passing(err error, answered bool) bool {
	switch status.Code(err) {
	case codes.Unknown, codes.Canceled, codes.DeadlineExceeded:
		return true
	case codes.Unavailable:
		for _, text := range reconnects {
			if strings.Contains(status.Convert(err).Message(), text) {
				return true
			}
		}
		return !answered
	}
	return false
}

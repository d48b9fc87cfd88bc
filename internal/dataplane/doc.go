// Package dataplane sends requests and answers them: an open-loop and a
// closed-loop load generator for HTTP/1.1 and HTTP/2, and the echo server that
// they call.
//
// The generator exists because most others measure something else. In an open
// loop every request has a moment at which it is due, fixed before the first
// is sent; its latency counts from there, never from when a connection was free
// to take it. So a server that stalls for a second is seen to have stalled by
// every request that was due in that second, as its users would have seen it.
// What the generator itself adds is measured too: how late each request
// was sent.
//
// HTTP/1.1 responses are read by a parser of this package instead of
// http.ReadResponse. BenchmarkReadResponse, 2026-11-22, 8 runs each: 0.62 µs and no
// allocation against 1.96 µs and 9 allocations (p < 0.001), of about 20 µs of
// processor time that a whole request takes (BenchmarkOpen20000). That is more than
// the 5 % that a shared parser would be worth. The parser also refuses responses
// that net/http accepts, such as lines that end in LF alone.
//
// Which rates, variants and repeats follow each other, what stands between
// client and server, and what is done with the figures is left to internal/latency.
package dataplane

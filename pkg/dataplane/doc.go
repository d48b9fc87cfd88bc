// Package dataplane sends requests and answers them: an open-loop and a
// closed-loop load generator for HTTP/1.1 and HTTP/2, and the echo server that
// they call.
//
// The generator exists because most others measure something else. In an open
// loop every request has a moment at which it is due, fixed before the first
// leaves; its latency counts from there, never from when a connection was free
// to take it. So a server that stalls for a second is seen to have stalled by
// every request that was due in that second, as its users would have seen it.
// What the generator itself adds is measured too: the lateness of each request's
// leaving.
//
// Which rates, variants and repeats follow each other, what stands between
// client and server, and what becomes of the figures is left to package
// experiment.
package dataplane

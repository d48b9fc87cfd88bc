package xdsprobe

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"scaler.mesh/scaler/pkg/proxy"
)

// window is the flow-control window of Istio's agent.
const window = 1 << 20

// method returns the gRPC method of a variant.
func (v Variant) method() string {
	if v == SotW {
		return "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
	}
	return "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
}

// classify returns the Class of a stream that had a connection, and on which this number
// of responses was received.
func classify(err error, responses int, answered bool) proxy.Class {
	if errors.Is(err, errWire) {
		return proxy.Misunderstood
	}
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return proxy.Unauthorized
	case codes.ResourceExhausted:
		if responses == 0 {
			return proxy.Refused
		}
	case codes.Unavailable:
		// A connection that broke is Unavailable too; only a server's own
		// answer has trailers.
		if responses == 0 && answered {
			return proxy.Refused
		}
	}
	return proxy.Lost
}

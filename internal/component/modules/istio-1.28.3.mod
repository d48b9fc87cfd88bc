module scaler.mesh/components/istio

go 1.24.0

require istio.io/istio v0.0.0-20260114100434-4c1f845d839e

replace github.com/envoyproxy/go-control-plane => github.com/envoyproxy/go-control-plane v0.14.0

module scaler.mesh/components/istio

go 1.26.0

require istio.io/istio v0.0.0-20260827124520-eed52ebb66ad

// What istio.io/istio requires at pseudo-versions, at the releases that they became.
replace (
	github.com/envoyproxy/go-control-plane/contrib => github.com/envoyproxy/go-control-plane/contrib v1.36.1-0.20260729145720-a2d8c7492908
	github.com/envoyproxy/go-control-plane/envoy => github.com/envoyproxy/go-control-plane/envoy v1.40.0
	istio.io/api => istio.io/api v1.31.1
	istio.io/client-go => istio.io/client-go v1.31.1
)

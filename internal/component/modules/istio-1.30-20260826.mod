module scaler.mesh/components/istio

go 1.25.9

require istio.io/istio v0.0.0-20260826214018-9739e10eb9d7

replace (
	github.com/agentgateway/agentgateway/api => github.com/agentgateway/agentgateway/api v0.0.0-20260501213430-773586679f1c
	github.com/envoyproxy/go-control-plane/contrib => github.com/envoyproxy/go-control-plane/contrib v1.36.1-0.20260418153000-ae8637bdda9d
	github.com/envoyproxy/go-control-plane/envoy => github.com/envoyproxy/go-control-plane/envoy v1.37.1-0.20260418153000-ae8637bdda9d
	istio.io/api => istio.io/api v1.30.3
	istio.io/client-go => istio.io/client-go v1.30.3
)

module scaler.mesh/components/istio

go 1.24.0

require istio.io/istio v0.0.0-20250808040725-7359d8be2504

module scaler.mesh/components/istio

go 1.25.0

require istio.io/istio v0.0.0-20260306174214-6991a379e1fc

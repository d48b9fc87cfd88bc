module scaler.mesh/components/istio

go 1.25.7

require istio.io/istio v0.0.0-20260423205519-b01690e6db7d

module scaler.mesh/components/linkerd

go 1.26.0

require github.com/linkerd/linkerd2 v0.5.1-0.20210701172824-d3cc21da777c

require k8s.io/client-go v0.21.2 // indirect

replace github.com/grpc-ecosystem/grpc-gateway => github.com/grpc-ecosystem/grpc-gateway v1.14.8

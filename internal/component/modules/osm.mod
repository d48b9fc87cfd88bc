module scaler.mesh/components/osm

go 1.26.0

require github.com/openservicemesh/osm v1.2.4

require k8s.io/client-go v0.26.3 // indirect

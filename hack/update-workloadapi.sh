#!/usr/bin/env bash
# Writes internal/analyse/diff/workloadapi.binpb: the descriptors of Istio's
# pkg/workloadapi in the version that istiod is built of, a
# google.protobuf.FileDescriptorSet. Pass another file to write there instead.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath "${1:-internal/analyse/diff/workloadapi.binpb}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp internal/component/modules/istio.mod "$work/go.mod"
cp internal/component/modules/istio.sum "$work/go.sum"
cat >"$work/main.go" <<'EOF'
package main

import (
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"istio.io/istio/pkg/workloadapi"
	"istio.io/istio/pkg/workloadapi/security"
)

func main() {
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
		protodesc.ToFileDescriptorProto(workloadapi.File_workloadapi_workload_proto),
		protodesc.ToFileDescriptorProto(security.File_workloadapi_security_authorization_proto),
	}}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.Write(encoded); err != nil {
		panic(err)
	}
}
EOF
(cd "$work" && GOWORK=off GOFLAGS=-mod=mod go run . >set.binpb)
install -m 644 "$work/set.binpb" "$out"

package xdsprobe

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
)

// request is a DiscoveryRequest or a DeltaDiscoveryRequest. Fields that only one of them
// has are empty in the other.
type request struct {
	url   string // of the type
	node  []byte // encoded; nil in all but the first request of a stream
	build []byte // the rest of the node
	nonce string // of the response that is acknowledged or rejected; delta: "" in others
	err   error  // why it is rejected

	subscribe, unsubscribe []string    // delta
	initial                []*Resource // delta: held from an earlier stream

	names   []string // state of the world: all that is subscribed to by name
	version string   // state of the world: of the last response accepted
}

// maxDetail limits the bytes of an error message sent to the server.
const maxDetail = 4096

// append encodes the request after b.
func (r *request) append(b []byte, v Variant) []byte {
	if v == SotW {
		return r.appendSotW(b)
	}
	return r.appendDelta(b)
}

// appendDelta encodes an envoy.service.discovery.v3.DeltaDiscoveryRequest.
func (r *request) appendDelta(b []byte) []byte {
	b = appendNode(b, 1, r)
	b = appendString(b, 2, r.url)
	for _, name := range r.subscribe {
		b = appendElement(b, 3, name)
	}
	for _, name := range r.unsubscribe {
		b = appendElement(b, 4, name)
	}
	for _, held := range r.initial { // map<string, string>
		size := protowire.SizeTag(1) + protowire.SizeBytes(len(held.Name)) +
			protowire.SizeTag(2) + protowire.SizeBytes(len(held.version))
		b = protowire.AppendTag(b, 5, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(size))
		b = appendElement(b, 1, held.Name)
		b = appendElement(b, 2, held.version)
	}
	b = appendString(b, 6, r.nonce)
	return appendStatus(b, 7, r.err)
}

// appendSotW encodes an envoy.service.discovery.v3.DiscoveryRequest.
func (r *request) appendSotW(b []byte) []byte {
	b = appendString(b, 1, r.version)
	b = appendNode(b, 2, r)
	for _, name := range r.names {
		b = appendElement(b, 3, name)
	}
	b = appendString(b, 4, r.url)
	b = appendString(b, 5, r.nonce)
	return appendStatus(b, 6, r.err)
}

// appendNode encodes both parts of the node as one message.
func appendNode(b []byte, number protowire.Number, r *request) []byte {
	if len(r.node) == 0 {
		return b
	}
	b = protowire.AppendTag(b, number, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(r.node)+len(r.build)))
	return append(append(b, r.node...), r.build...)
}

// appendStatus encodes err as a google.rpc.Status, with the code that Envoy
// gives a rejection.
func appendStatus(b []byte, number protowire.Number, err error) []byte {
	if err == nil {
		return b
	}
	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxDetail)], "")
	status := protowire.AppendTag(nil, 1, protowire.VarintType)
	status = protowire.AppendVarint(status, uint64(codes.Internal))
	status = appendString(status, 2, text)
	return appendBytes(b, number, status)
}

// appendString encodes a singular string field, which is left out when empty.
func appendString(b []byte, number protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return appendElement(b, number, s)
}

// appendElement encodes a string as an element of a list, even when empty.
func appendElement(b []byte, number protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, number, protowire.BytesType)
	return protowire.AppendString(b, s)
}

func appendBytes(b []byte, number protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	b = protowire.AppendTag(b, number, protowire.BytesType)
	return protowire.AppendBytes(b, v)
}

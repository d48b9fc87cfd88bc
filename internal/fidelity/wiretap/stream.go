package wiretap

import (
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// Stream is a recorded ADS stream.
type Stream struct {
	From     string            // address of the proxy's end
	Headers  map[string]string // of the call, as headersOf has them
	Node     *Node             // of the first request that had one; nil before it
	Nodes    int               // requests that had one
	Messages []Message         // in the order in which they were passed on
	Ended    bool
}

// Node is the node of a proxy's first request.
type Node struct {
	ID, Cluster string
	Metadata    map[string]any // JSON types
	// Others are the names of the node's other fields that are set.
	Others []string
}

// Message is one DeltaDiscoveryRequest or DeltaDiscoveryResponse.
type Message struct {
	At      time.Time
	Request bool   // by the proxy; else a response of the control plane
	Type    string // of the resources: its short name, such as CDS, or its URL if it has none
	Nonce   string // of a request: of the response that it acknowledges or rejects
	Bytes   int    // length of the message

	// Of requests.
	Subscribe, Unsubscribe []string          // as sent
	Initial                map[string]string // initial_resource_versions
	Rejected               string            // why the response is rejected; "" = it is not

	// Of responses.
	Resources []Resource
	Removed   []string
}

// Resource is one resource of a response.
type Resource struct {
	Name, Version string
	Bytes         int    // of its own message
	Digest        uint64 // of that
}

// readRequest reads a request. An invalid message is recorded with its length only.
func readRequest(b []byte) (Message, *Node) {
	m := Message{At: time.Now(), Request: true, Bytes: len(b)}
	var r discoveryv3.DeltaDiscoveryRequest
	if err := proto.Unmarshal(b, &r); err != nil {
		m.Rejected = err.Error()
		return m, nil
	}
	m.Type, m.Nonce = typeName(r.GetTypeUrl()), r.GetResponseNonce()
	m.Subscribe, m.Unsubscribe, m.Initial = r.GetResourceNamesSubscribe(), r.GetResourceNamesUnsubscribe(), r.GetInitialResourceVersions()
	if r.GetErrorDetail() != nil {
		m.Rejected = r.GetErrorDetail().GetMessage()
	}
	if r.GetNode() == nil {
		return m, nil
	}
	n := &Node{ID: r.GetNode().GetId(), Cluster: r.GetNode().GetCluster(), Metadata: r.GetNode().GetMetadata().AsMap()}
	fields := r.GetNode().ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if name := string(f.Name()); r.GetNode().ProtoReflect().Has(f) && name != "id" && name != "cluster" && name != "metadata" {
			n.Others = append(n.Others, name)
		}
	}
	return m, n
}

// readResponse reads a response.
func readResponse(b []byte) Message {
	m := Message{At: time.Now(), Bytes: len(b)}
	var r discoveryv3.DeltaDiscoveryResponse
	if err := proto.Unmarshal(b, &r); err != nil {
		m.Rejected = err.Error()
		return m
	}
	m.Type, m.Nonce, m.Removed = typeName(r.GetTypeUrl()), r.GetNonce(), r.GetRemovedResources()
	for _, one := range r.GetResources() {
		m.Resources = append(m.Resources, Resource{
			one.GetName(), one.GetVersion(), len(one.GetResource().GetValue()), xxhash.Sum64(one.GetResource().GetValue()),
		})
	}
	return m
}

func (s *Stream) clone() Stream {
	c := *s
	c.Messages = slices.Clone(s.Messages)
	return c
}

package xdsprobe

import (
	"errors"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

var _ = It("backs off as gRPC clients do", func() {
	t := GinkgoTB()
	b := backoff{base: streamBackoffBase, max: streamBackoffMax}
	want := []time.Duration{500, 1000, 2000, 4000, 8000, 16000, 30000, 30000}
	for range 1000 {
		b.reset()
		for i, limit := range want {
			if got := b.next(); got < 0 || got >= limit*time.Millisecond {
				t.Fatalf("wait %d = %v, want less than %d ms", i+1, got, limit)
			}
		}
	}
	var sum time.Duration
	for range 1000 {
		b.reset()
		sum += b.next()
	}
	if mean := sum / 1000; mean < 200*time.Millisecond || mean > 300*time.Millisecond {
		t.Errorf("mean of the first wait = %v, want about 250 ms", mean)
	}
})

var _ = It("subtracts sorted names", func() {
	t := GinkgoTB()
	for _, test := range []struct{ a, b, want string }{
		{"", "", ""}, {"a", "", "a"}, {"", "a", ""}, {"a b c", "b", "a c"}, {"a b c", "a b c", ""}, {"b d", "a c e", "b d"},
	} {
		got := minus(strings.Fields(test.a), strings.Fields(test.b))
		if strings.Join(got, " ") != test.want {
			t.Errorf("minus(%s, %s) = %v, want %s", test.a, test.b, got, test.want)
		}
	}
})

var _ = It("encodes requests", func() {
	t := GinkgoTB()
	node, err := (&Config{NodeID: "n", NodeCluster: "c", Metadata: map[string]any{"LABELS": map[string]any{"app": "a"}}}).encodeNode()
	if err != nil {
		t.Fatal(err)
	}
	r := request{
		url: typeURLs[convergence.EDS], node: node, nonce: "nonce", version: "version", err: errors.New("bad " + strings.Repeat("ü", 3000)),
		subscribe: []string{"a", ""}, unsubscribe: []string{"b"}, names: []string{"a", "c"},
		initial: []*Resource{{Resource: proxy.Resource{Key: convergence.Key{Name: "a"}}, version: "1"}, {Resource: proxy.Resource{Key: convergence.Key{Name: "d"}}}},
	}
	detail := &statuspb.Status{Code: 13, Message: "bad " + strings.Repeat("ü", 2046)}

	var delta discoveryv3.DeltaDiscoveryRequest
	if err := proto.Unmarshal(r.append(nil, Delta), &delta); err != nil {
		t.Fatal(err)
	}
	n := delta.GetNode()
	if n.GetId() != "n" || n.GetCluster() != "c" || n.GetMetadata().GetFields()["LABELS"].GetStructValue().GetFields()["app"].GetStringValue() != "a" {
		t.Errorf("node = %v", n)
	}
	want := &discoveryv3.DeltaDiscoveryRequest{
		Node: n, TypeUrl: typeURLs[convergence.EDS], ResponseNonce: "nonce", ErrorDetail: detail,
		ResourceNamesSubscribe: []string{"a", ""}, ResourceNamesUnsubscribe: []string{"b"},
		InitialResourceVersions: map[string]string{"a": "1", "d": ""},
	}
	if diff := cmp.Diff(want, &delta, protocmp.Transform()); diff != "" {
		t.Errorf("delta request (-want +got):\n%s", diff)
	}

	var sotw discoveryv3.DiscoveryRequest
	if err := proto.Unmarshal(r.append(nil, SotW), &sotw); err != nil {
		t.Fatal(err)
	}
	wantSotW := &discoveryv3.DiscoveryRequest{
		Node: n, TypeUrl: typeURLs[convergence.EDS], ResponseNonce: "nonce", ErrorDetail: detail,
		VersionInfo: "version", ResourceNames: []string{"a", "c"},
	}
	if diff := cmp.Diff(wantSotW, &sotw, protocmp.Transform()); diff != "" {
		t.Errorf("state-of-the-world request (-want +got):\n%s", diff)
	}
})

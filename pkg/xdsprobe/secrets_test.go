package xdsprobe

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	"google.golang.org/protobuf/proto"
)

// These were recorded from Envoy 1.40.0 with Istio's agent, on istiod.
var _ = Describe("clusters that speak TLS", func() {
	var certified func()
	begin := func() (*script, *talk) {
		server := startScript()
		certified = start(NewStore(), Config{Address: server.address, AwaitCertificate: true}).sidecar.Certified
		t := server.next()
		t.expect("CDS node=test")
		return server, t
	}

	It("keep listeners from being asked for until there is a certificate", func() {
		server, t := begin()
		t.answer(cds, "1", securedCluster("a"))
		t.expect("EDS +a", "CDS nonce=1")
		t.answer(eds, "2", assignment("a"))
		t.expect("EDS nonce=2")
		certified()
		t.expect("LDS")

		By("reconnecting, with the certificate there")
		t.finish(nil)
		server.next().expect("CDS ~a:1 node=test", "EDS +a ~a:2", "LDS")
	})

	It("put them after the ACK of load assignments", func() {
		_, t := begin()
		certified()
		t.answer(cds, "1", securedCluster("a"))
		t.expect("EDS +a", "CDS nonce=1")
		t.answer(eds, "2", assignment("a"))
		t.expect("EDS nonce=2", "LDS")
	})

	It("do so over a reconnect before the certificate", func() {
		server, t := begin()
		t.answer(cds, "1", securedCluster("a"))
		t.expect("EDS +a", "CDS nonce=1")
		t.answer(eds, "2", assignment("a"))
		t.expect("EDS nonce=2")
		t.finish(nil)
		t = server.next()
		t.expect("CDS ~a:1 node=test", "EDS +a ~a:2")
		certified()
		t.answer(cds, "1")
		t.expect("CDS nonce=1", "LDS")
	})

	It("matter only where they are", func() {
		_, t := begin()
		t.answer(cds, "1", edsCluster("a", "", 1))
		t.expect("EDS +a", "CDS nonce=1")
		t.answer(eds, "2", assignment("a"))
		t.expect("LDS", "EDS nonce=2")
	})
})

// A node is sent in two parts, of which one is shared.
var _ = It("sends a node in two parts", func() {
	t := GinkgoTB()
	build, err := proto.Marshal(&corev3.Node{UserAgentName: "envoy", Extensions: []*corev3.Extension{{Name: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	node, err := (&Config{NodeID: "id", Build: build}).encodeNode()
	if err != nil {
		t.Fatal(err)
	}
	want := &corev3.Node{Id: "id", UserAgentName: "envoy", Extensions: []*corev3.Extension{{Name: "x"}}}
	first := &request{url: typeURLs[cds], node: node, build: build}
	var delta discoveryv3.DeltaDiscoveryRequest
	if err := proto.Unmarshal(first.append(nil, Delta), &delta); err != nil || !proto.Equal(delta.GetNode(), want) {
		t.Errorf("node is %v (%v), want %v", delta.GetNode(), err, want)
	}
	var sotw discoveryv3.DiscoveryRequest
	if err := proto.Unmarshal(first.append(nil, SotW), &sotw); err != nil || !proto.Equal(sotw.GetNode(), want) {
		t.Errorf("node is %v (%v), want %v", sotw.GetNode(), err, want)
	}
})

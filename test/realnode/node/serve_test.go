package main

import (
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Services are found by their full names; other types of records of them are absent, other names
// unknown.
func TestAnswer(t *testing.T) {
	services := func(service, namespace string) string {
		if service == "istiod" && namespace == "istio-system" {
			return "10.0.3.4"
		}
		return ""
	}
	for _, tc := range []struct {
		name string
		kind dnsmessage.Type
		code dnsmessage.RCode
		want string
	}{
		{"istiod.istio-system.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "10.0.3.4"},
		{"Istiod.Istio-System.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "10.0.3.4"},
		{"istiod.istio-system.svc.cluster.local.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, ""},
		{"istiod.default.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		{"istiod.istio-system.svc.default.svc.cluster.local.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		{"example.com.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
	} {
		query := dnsmessage.Message{
			Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
			Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(tc.name), Type: tc.kind, Class: dnsmessage.ClassINET}},
		}
		packed, err := query.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var reply dnsmessage.Message
		if err := reply.Unpack(answer(packed, services)); err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(reply.Answers) > 0 {
			got = netip.AddrFrom4(reply.Answers[0].Body.(*dnsmessage.AResource).A).String()
		}
		if !reply.Response || reply.ID != 7 || reply.RCode != tc.code || got != tc.want {
			t.Errorf("%s %v: %v with %q, want %v with %q", tc.name, tc.kind, reply.RCode, got, tc.code, tc.want)
		}
	}
	if answer([]byte("no query"), services) != nil {
		t.Error("what is no query is answered")
	}
}

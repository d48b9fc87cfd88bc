package wiretap

import (
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

const (
	cdsURL = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	edsURL = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	ldsURL = "type.googleapis.com/envoy.config.listener.v3.Listener"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// conversation sends messages at intervals of 10 ms.
func conversation(messages ...Message) *Stream {
	for i := range messages {
		messages[i].At = start.Add(time.Duration(i) * 10 * time.Millisecond)
	}
	return &Stream{Messages: messages}
}

func asks(url string, names ...string) Message {
	return Message{Request: true, Type: typeName(url), Subscribe: names}
}

func sends(url, nonce string, names ...string) Message {
	m := Message{Type: typeName(url), Nonce: nonce}
	for _, name := range names {
		m.Resources = append(m.Resources, Resource{Name: name, Version: nonce, Bytes: len(name)})
	}
	return m
}

func acks(url, nonce string) Message {
	return Message{Request: true, Type: typeName(url), Nonce: nonce}
}

func first() *Stream {
	return conversation(
		asks(cdsURL), sends(cdsURL, "1", "b", "a"), asks(edsURL, "b", "a"), acks(cdsURL, "1"),
		sends(edsURL, "2", "a"), acks(edsURL, "2"), asks(ldsURL), sends(ldsURL, "3"), acks(ldsURL, "3"),
	)
}

var _ = It("reads requests", func() {
	t := GinkgoTB()
	removed := sends(cdsURL, "4")
	removed.Removed = []string{"b"}
	refused := acks(edsURL, "2")
	refused.Rejected = "no"
	again := asks(edsURL, "a")
	again.Initial = map[string]string{"a": "2", "c": "1"}
	for name, c := range map[string]struct {
		stream   *Stream
		versions map[Key]string
		want     []string
	}{
		"a start": {first(), nil, []string{"CDS", "EDS +a +b", "CDS ack a b", "EDS ack a", "LDS", "LDS ack"}},
		"a removal": {
			conversation(removed, Message{Request: true, Type: "EDS", Unsubscribe: []string{"b"}}, acks(cdsURL, "4")), nil,
			[]string{"EDS -b", "CDS ack -b"},
		},
		"a refusal":             {conversation(sends(edsURL, "2", "a"), refused), nil, []string{"EDS nack a"}},
		"an ACK of nothing":     {conversation(acks(edsURL, "9")), nil, []string{"EDS ack of nothing"}},
		"a reconnect":           {conversation(again), map[Key]string{{"EDS", "a"}: "2", {"EDS", "c"}: "2"}, []string{"EDS +a ~!c ~a"}},
		"a type without a name": {conversation(asks("type.googleapis.com/x")), nil, []string{"type.googleapis.com/x"}},
	} {
		By(name, func() {
			if got := c.stream.Requests(c.versions); !slices.Equal(got, c.want) {
				t.Errorf("Requests are %q, want %q", got, c.want)
			}
		})
	}
})

var _ = It("knows what a client holds", func() {
	t := GinkgoTB()
	one, two := first(), conversation(
		asks(cdsURL), asks(edsURL, "a"), sends(cdsURL, "1", "c"), sends(edsURL, "2", "c"), // not asked for
		Message{Type: "CDS", Nonce: "3", Removed: []string{"b"}},
		Message{Request: true, Type: "EDS", Unsubscribe: []string{"a"}},
	)
	for name, c := range map[string]struct {
		streams []Stream
		want    []Key
	}{
		"one stream":  {[]Stream{*one}, []Key{{"CDS", "a"}, {"CDS", "b"}, {"EDS", "a"}}},
		"two streams": {[]Stream{*one, *two}, []Key{{"CDS", "a"}, {"CDS", "c"}}},
	} {
		By(name, func() {
			held := Held(c.streams)
			for _, k := range c.want {
				if _, ok := held[k]; !ok {
					t.Errorf("%s is not held", k)
				}
			}
			if len(held) != len(c.want) {
				t.Errorf("held are %v, want %v", slices.Collect(maps.Keys(held)), c.want)
			}
		})
	}
	if got := Versions([]Stream{*one})[Key{"EDS", "a"}]; got != "2" {
		t.Errorf("version of EDS a is %q, want 2", got)
	}
})

var _ = It("knows when a client holds all", func() {
	t := GinkgoTB()
	whole := first()
	whole.Messages = append(whole.Messages, sends(edsURL, "4", "b"), acks(edsURL, "4"))
	gone := first()
	gone.Messages = append(gone.Messages, Message{Type: "EDS", Nonce: "4", Removed: []string{"b"}}, acks(edsURL, "4"))
	unacknowledged := first()
	unacknowledged.Messages = append(unacknowledged.Messages, sends(edsURL, "4", "b"))
	for name, c := range map[string]struct {
		stream *Stream
		want   bool
	}{
		"nothing yet":           {conversation(), false},
		"a name not answered":   {first(), false},
		"everything":            {whole, true},
		"a name that is not":    {gone, true},
		"a response not ACKed":  {unacknowledged, false},
		"clusters alone so far": {conversation(asks(cdsURL), sends(cdsURL, "1"), acks(cdsURL, "1")), false},
	} {
		if got := c.stream.Complete("CDS", "LDS"); got != c.want {
			t.Errorf("%s: Complete is %t, want %t", name, got, c.want)
		}
	}
})

var _ = It("knows when responses came", func() {
	t := GinkgoTB()
	got, err := first().Times()
	const ms = time.Millisecond
	if want := (Times{First: 10 * ms, Complete: 80 * ms, Own: 50 * ms}); err != nil || got != want {
		t.Errorf("Times are %+v (%v), want %+v", got, err, want)
	}
	if _, err := conversation(asks(cdsURL)).Times(); err == nil {
		t.Error("Times of a stream without an answer: no error")
	}
})

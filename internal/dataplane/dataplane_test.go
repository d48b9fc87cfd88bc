package dataplane

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// short returns an open loop over real connections: what is asserted are counts.
func short(l Load) OpenLoad {
	return OpenLoad{Load: l, Rate: 500, Duration: 400 * time.Millisecond}
}

var _ = Describe("the generator", func() {
	for _, version := range []int{1, 2} {
		It("has every request answered over HTTP/"+string(rune('0'+version)), func(ctx SpecContext) {
			address := startEcho(EchoOptions{})
			r, err := Open(ctx, short(Load{Target: Target{Addresses: []string{address}}, HTTP: version, Warmup: 100 * time.Millisecond}))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.Requests).To(BeEquivalentTo(200))
			Expect(r.Errors).To(BeEmpty())
			Expect(r.NotSent).To(BeZero())
			Expect(r.Latency.Summary().Count).To(BeEquivalentTo(200))
			Expect(r.Lateness.Summary().Count).To(BeEquivalentTo(200))
			Expect(r.Connections).To(BeNumerically(">", 0))
		})

		It("counts what fails by its kind over HTTP/"+string(rune('0'+version)), func(ctx SpecContext) {
			var n atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if n.Add(1)%2 == 0 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			protocols := new(http.Protocols)
			protocols.SetHTTP1(true)
			protocols.SetUnencryptedHTTP2(true)
			server.Config.Protocols = protocols
			server.Start()
			DeferCleanup(server.Close)
			r, err := Open(ctx, short(Load{Target: Target{Addresses: []string{server.Listener.Addr().String()}}, HTTP: version}))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.Errors).To(Equal(map[string]int64{"status 503": 100}))
			Expect(r.Latency.Summary().Lost).To(BeEquivalentTo(100))
		})

		It("reports that nothing listens over HTTP/"+string(rune('0'+version)), func(ctx SpecContext) {
			r, err := Open(ctx, short(Load{Target: Target{Addresses: []string{"127.0.0.1:1"}}, HTTP: version}))
			Expect(err).NotTo(HaveOccurred())
			Expect(r.Errors).To(Equal(map[string]int64{problemConnect: 200}))
			Expect(r.Answered).To(BeZero())
			Expect(r.Latency.Summary().Lost).To(BeEquivalentTo(200))
		})
	}

	It("opens a connection for each request with NoKeepalive", func(ctx SpecContext) {
		var opened atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !r.Close {
				w.WriteHeader(http.StatusBadRequest)
			}
		}))
		server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
		}
		server.Start()
		DeferCleanup(server.Close)
		r, err := Closed(ctx, ClosedLoad{
			Load: Load{Target: Target{Addresses: []string{server.Listener.Addr().String()}}, NoKeepalive: true, Connections: 4}, Requests: 50,
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Errors).To(BeEmpty())
		Expect(r.Requests).To(BeEquivalentTo(50))
		Expect(r.Answered).To(BeEquivalentTo(50))
		Expect(opened.Load()).To(BeEquivalentTo(50))
		Expect(r.Connections).To(BeNumerically("<=", 4))
	})

	It("takes a closed connection for what it is", func(ctx SpecContext) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				c.Close()
			}
		}))
		DeferCleanup(server.Close)
		r, err := Closed(ctx, ClosedLoad{Load: Load{Target: Target{Addresses: []string{server.Listener.Addr().String()}}}, Requests: 3})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Errors).To(Equal(map[string]int64{problemClosed: 3}))
	})

	It("calls several addresses in turn", func(ctx SpecContext) {
		var counts [3]atomic.Int64
		var target Target
		for i := range counts {
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { counts[i].Add(1) }))
			DeferCleanup(server.Close)
			target.Addresses = append(target.Addresses, server.Listener.Addr().String())
		}
		r, err := Open(ctx, OpenLoad{Load: Load{Target: target}, Rate: 300, Duration: time.Second / 2})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Errors).To(BeEmpty())
		for i := range counts {
			Expect(counts[i].Load()).To(BeEquivalentTo(50))
		}
	})

	It("ends at once with its context", func(ctx SpecContext) {
		under, cancel := context.WithCancel(ctx)
		defer cancel()
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			cancel() // one is under way
			<-r.Context().Done()
		}))
		DeferCleanup(server.Close)
		address := server.Listener.Addr().String()
		_, err := Open(under, OpenLoad{Load: Load{Target: Target{Addresses: []string{address}}, Timeout: time.Hour}, Rate: 100, Duration: time.Hour})
		Expect(err).To(MatchError(context.Canceled))
	}, SpecTimeout(30*time.Second))

	DescribeTable("refuses what it cannot do", func(ctx SpecContext, change func(*OpenLoad), want string) {
		l := short(Load{Target: Target{Addresses: []string{"127.0.0.1:1"}}})
		change(&l)
		_, err := Open(ctx, l)
		Expect(err).To(MatchError(ContainSubstring(want)))
	},
		Entry("no rate", func(l *OpenLoad) { l.Rate = 0 }, "sending 0 requests a second"),
		Entry("HTTP/3", func(l *OpenLoad) { l.HTTP = 3 }, "HTTP/3: want 1 or 2"),
		Entry("no address", func(l *OpenLoad) { l.Target.Addresses = nil }, "without addresses"),
		Entry("half an address", func(l *OpenLoad) { l.Target.Addresses[0] = "localhost" }, "want HOST:PORT"),
		Entry("a header in the path", func(l *OpenLoad) { l.Target.Path = "/ HTTP/1.1\r\nX: y" }, "want printable ASCII"),
	)
})

var _ = Describe("the echo server", func() {
	It("shows what headers arrived", func(ctx SpecContext) {
		address := startEcho(EchoOptions{})
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+HeadersPath, nil)
		Expect(err).NotTo(HaveOccurred())
		request.Header.Set("X-Forwarded-Client-Cert", "URI=spiffe://a/b")
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Do(request)
		Expect(err).NotTo(HaveOccurred())
		defer answer.Body.Close()
		var headers http.Header
		Expect(json.NewDecoder(answer.Body).Decode(&headers)).To(Succeed())
		Expect(headers.Get("X-Forwarded-Client-Cert")).To(Equal("URI=spiffe://a/b"))
	})

	for _, version := range []int{1, 2} {
		It("forwards along a chain over HTTP/"+string(rune('0'+version)), func(ctx SpecContext) {
			last := startEcho(EchoOptions{Name: "last", Wait: 10 * time.Millisecond})
			first := startEcho(EchoOptions{Next: Target{Addresses: []string{last}}, HTTP: version, Wait: 10 * time.Millisecond})
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			answer, err := client.Get("http://" + first)
			Expect(err).NotTo(HaveOccurred())
			defer answer.Body.Close()
			var body strings.Builder
			Expect(answer.Write(&body)).To(Succeed())
			Expect(body.String()).To(HaveSuffix("last\n"))
		})
	}

	It("says which port is taken", func(ctx SpecContext) {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(taken.Close)
		address := taken.Addr().String()
		Expect(Echo(ctx, EchoOptions{Listen: address})).To(MatchError(And(ContainSubstring(address), ContainSubstring("in use"))))
	})
})

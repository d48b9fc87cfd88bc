package latency

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/dataplane"
)

var _ = Describe("the check for plaintext", func() {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	// at returns the URL of a server whose handler serves both versions of HTTP.
	at := func(h http.HandlerFunc) string {
		server := httptest.NewUnstartedServer(h)
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetHTTP1(true)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
		DeferCleanup(server.Close)
		return server.Listener.Addr().String()
	}
	// tcp returns the address of a server that passes its connections to handle.
	tcp := func(handle func(*net.TCPConn)) string {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				handle(c.(*net.TCPConn))
			}
		}()
		DeferCleanup(func() {
			listener.Close()
			Eventually(ended).Should(BeClosed())
		})
		return listener.Addr().String()
	}
	read := func(c *net.TCPConn) { _, _ = c.Read(make([]byte, 1<<16)) }
	const silent = "no answer in time"
	check := func(ctx context.Context, version int, strict bool, address string) error {
		spec := DefaultSpec()
		spec.Latency.HTTP = version
		if CurrentSpecReport().LeafNodeText == silent { // all others end by themselves
			spec.Latency.Timeout = 300e6
		}
		return way{servers: []checkedServer{
			{name: "strict-server-0", to: dataplane.Target{Addresses: []string{address}, Host: "server.host"}, strict: strict},
		}}.verifyPlaintext(ctx, &spec)
	}

	for _, version := range []int{1, 2} {
		DescribeTable("distinguishes a refusal from a failure, over HTTP/"+strconv.Itoa(version),
			func(ctx SpecContext, listen func() string, strict, permissive string) {
				address := listen()
				for isStrict, want := range map[bool]string{true: strict, false: permissive} {
					if err := check(ctx, version, isStrict, address); want == "" {
						Expect(err).NotTo(HaveOccurred())
					} else {
						Expect(err).To(MatchError(ContainSubstring(want)))
					}
				}
			},
			// As where a strict variant's policy is missing.
			Entry("a good answer", func() string { return at(status(200)) }, errPlaintext.Error(), ""),
			Entry("forbidden", func() string { return at(status(403)) }, "", "403 Forbidden"),
			Entry("ended at once", func() string { return tcp(func(c *net.TCPConn) { c.Close() }) }, "", "past the client's sidecar"),
			Entry("ended when the request came", func() string { return tcp(func(c *net.TCPConn) { read(c); c.Close() }) }, "", "past the client's sidecar"),
			Entry("reset", func() string { return tcp(func(c *net.TCPConn) { read(c); _ = c.SetLinger(0); c.Close() }) }, "", "past the client's sidecar"),
			Entry("not found", func() string { return at(status(404)) }, "was not refused but failed: GET", "404 Not Found"),
			Entry("nobody listens", func() string { return "127.0.0.1:1" }, "was not refused but failed", "connection refused"),
			Entry(silent, func() string {
				var held []*net.TCPConn
				DeferCleanup(func() { // after tcp's, whose goroutine holds them
					for _, c := range held {
						c.Close()
					}
				})
				return tcp(func(c *net.TCPConn) { held = append(held, c) })
			}, "was not refused but failed", "exceeded"),
		)
	}

	It("does not take the end of its time for a refusal", func(ctx SpecContext) {
		late, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("too late"))
		err := check(late, 1, true, at(status(200)))
		Expect(err).To(MatchError(ContainSubstring("too late")))
		Expect(strings.Contains(err.Error(), "refused")).To(BeFalse())
	})
})

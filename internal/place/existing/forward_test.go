package existing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// apiServer forwards ports of one pod to those of this machine, as an API server and a kubelet
// do. Closing the channel ends what it forwards.
func apiServer(t *testing.T, path string, ports map[int]string) (*Cluster, chan struct{}) {
	t.Helper()
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
			t.Error(err)
			return
		}
		var mu sync.Mutex
		refusals := map[string]httpstream.Stream{} // streams of errors, by the request that they belong to
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
			if s.Headers().Get(corev1.StreamType) != corev1.StreamTypeData {
				mu.Lock()
				defer mu.Unlock()
				refusals[s.Headers().Get(corev1.PortForwardRequestIDHeader)] = s
				return nil
			}
			port, err := strconv.Atoi(s.Headers().Get(corev1.PortHeader))
			if err != nil {
				return err
			}
			mu.Lock()
			errors := refusals[s.Headers().Get(corev1.PortForwardRequestIDHeader)]
			mu.Unlock()
			to, err := net.Dial("tcp", ports[port])
			if err != nil {
				go func() { <-replied; fmt.Fprint(errors, err); errors.Close(); s.Close() }()
				return nil
			}
			go func() { <-replied; errors.Close() }()
			go func() { defer s.Close(); _, _ = io.Copy(s, to) }()
			go func() { defer to.Close(); _, _ = io.Copy(to, s) }()
			return nil
		})
		if connection == nil {
			t.Error("the connection was not upgraded")
			return
		}
		select {
		case <-end:
			connection.Close()
		case <-connection.CloseChan():
		}
	}))
	t.Cleanup(server.Close)
	return &Cluster{Context: "test", Server: server.URL, Config: &rest.Config{Host: server.URL}}, end
}

// echo answers each line with its name.
func echo(t *testing.T, name string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				lines := bufio.NewScanner(c)
				for lines.Scan() {
					fmt.Fprintln(c, name, lines.Text())
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// Ports of a pod are reached through the API server, by several connections at a time, until
// that ends.
func TestForward(t *testing.T) {
	cluster, end := apiServer(t, "/api/v1/namespaces/istio-system/pods/istiod-1/portforward", map[int]string{15012: echo(t, "proxies"), 15014: echo(t, "metrics")})
	f, err := cluster.Forward(t.Context(), "istio-system", "istiod-1", 15012, 15014)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 20 {
		for port, name := range map[int]string{15012: "proxies", 15014: "metrics"} {
			c, err := net.Dial("tcp", f.Address(port))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprintln(c, i)
			if line, err := bufio.NewReader(c).ReadString('\n'); line != fmt.Sprintf("%s %d\n", name, i) {
				t.Fatalf("port %d answers %q, %v", port, line, err)
			}
		}
	}
	close(end)
	<-f.Done()
	if f.Err() == nil {
		t.Error("the end of the connection is no error")
	}
}

// A port that is forwarded before anything listens on it refuses a connection, which ends the forwarding without a line
// in the log; that of other ports is logged.
func TestForwardBeforeStart(t *testing.T) {
	var logged atomic.Int32
	handlers := runtime.ErrorHandlers
	runtime.ErrorHandlers = []runtime.ErrorHandler{func(context.Context, error, string, ...any) { logged.Add(1) }}
	t.Cleanup(func() { runtime.ErrorHandlers = handlers })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	cluster, _ := apiServer(t, "/api/v1/namespaces/n/pods/p/portforward", map[int]string{1: closed.Addr().String(), 2: echo(t, "two")})
	for _, tt := range []struct {
		name    string
		forward func(context.Context, string, string, int) (*Forwarded, error)
		logs    bool
	}{
		{"before start", cluster.ForwardBeforeStart, false},
		{"after it", func(ctx context.Context, namespace, pod string, port int) (*Forwarded, error) {
			return cluster.Forward(ctx, namespace, pod, port)
		}, true},
	} {
		f, err := tt.forward(t.Context(), "n", "p", 1)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", f.Address(1))
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(c); len(answer) > 0 {
			t.Errorf("%s: a port that nothing listens on answers %q, %v", tt.name, answer, err)
		}
		c.Close()
		<-f.Done()
		if f.Err() == nil || (logged.Load() > 0) != tt.logs {
			t.Errorf("%s: ended with %v, %d errors are logged", tt.name, f.Err(), logged.Load())
		}
	}
	f, err := cluster.ForwardBeforeStart(t.Context(), "n", "p", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 3 {
		c, err := net.Dial("tcp", f.Address(2))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(c, i)
		if line, err := bufio.NewReader(c).ReadString('\n'); line != fmt.Sprintf("two %d\n", i) {
			t.Errorf("a port that answers: %q, %v", line, err)
		}
		c.Close()
	}
}

// Close is no error, and a pod that is not there is one.
func TestForwardClose(t *testing.T) {
	cluster, _ := apiServer(t, "/api/v1/namespaces/n/pods/p/portforward", map[int]string{1: echo(t, "one")})
	f, err := cluster.Forward(t.Context(), "n", "p", 1)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if f.Err() != nil {
		t.Errorf("closed with %v", f.Err())
	}
	if _, err := cluster.Forward(t.Context(), "n", "gone", 1); err == nil {
		t.Error("ports of a pod are forwarded that is not there")
	}
}

// What is sent while the connection to the API server ends fails as a closed connection does, which client-go does not log.
func TestSendingWhileItEnds(t *testing.T) {
	if _, err := (toPod{endedStream{}}).Write([]byte("more")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want %v", err, net.ErrClosed)
	}
}

// endedStream is a stream of a connection that has ended: its framer writes nothing more.
type endedStream struct{ httpstream.Stream }

func (endedStream) Write([]byte) (int, error) { return 0, io.EOF }

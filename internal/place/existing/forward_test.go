package existing

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
			if s.Headers().Get(corev1.StreamType) != corev1.StreamTypeData {
				go func() { <-replied; s.Close() }() // of errors: there are none
				return nil
			}
			port, err := strconv.Atoi(s.Headers().Get(corev1.PortHeader))
			if err != nil {
				return err
			}
			to, err := net.Dial("tcp", ports[port])
			if err != nil {
				return err
			}
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

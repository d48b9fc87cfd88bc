package xdsprobe_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"scaler.mesh/scaler/internal/controlplane/reference/server"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// completion is notified when a sidecar has all that it asked for.
type completion chan string

func (completion) TokenFetched(string, proxy.TokenFetched) {}
func (completion) StreamOpened(string, proxy.StreamOpened) {}
func (completion) StreamEnded(string, proxy.StreamEnded)   {}
func (completion) Certified(string, proxy.Certificate)     {}

func (c completion) Updated(id string, e proxy.Update) {
	if e.Complete {
		select {
		case c <- id:
		default:
		}
	}
}

// A sidecar against a server of this process, which has one service with one endpoint.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var listeners [3]net.Listener
	for i := range listeners {
		var err error
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			fmt.Println(err)
			return
		}
	}
	authority, err := server.NewAuthority()
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error, 1)
	go func() {
		served <- server.Run(ctx, server.Options{
			Static: &server.Static{
				Mesh:      server.Mesh{Services: []server.Service{{Namespace: "one", Name: "a", Ports: []server.Port{{Name: "http", Number: 80, Target: 8080}}}}},
				Endpoints: map[string][]server.Endpoint{"one/a:http": {{Addr: netip.MustParseAddrPort("10.0.0.1:8080")}}},
			},
			Authority: authority, Secure: listeners[0], Plain: listeners[1], Monitoring: listeners[2],
		})
	}()

	complete := make(completion, 1)
	sidecar := xdsprobe.New(xdsprobe.Config{
		ID: "pod-1", Address: listeners[1].Addr().String(), NodeID: "sidecar~10.0.0.9~pod-1.one~one.svc.cluster.local",
	}, xdsprobe.NewStore(), complete)
	ended := make(chan error, 1)
	go func() { ended <- sidecar.Run(ctx) }()

	fmt.Println(<-complete, "is complete")
	for _, held := range sidecar.Held() {
		fmt.Println(held.Key)
	}
	cancel()
	fmt.Println(<-ended, <-served)
	// Output:
	// pod-1 is complete
	// CDS one/a:http
	// EDS one/a:http
	// LDS outbound
	// RDS outbound
	// <nil> <nil>
}

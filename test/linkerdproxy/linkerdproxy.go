// Package linkerdproxy is a small stand-in for linkerd2-proxy, for tests on machines that do not have it. It
// takes its settings from the same environment, gets its certificate from identity for the key in its folder,
// looks up by destination where redirected connections go, and passes requests of HTTP/1 on over mutual
// TLS. Like a real one, that of a server takes plaintext too, and names the caller in a header.
package linkerdproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/linkerd/linkerd2-proxy-api/go/destination"
	"github.com/linkerd/linkerd2-proxy-api/go/identity"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	inboundListener = "LINKERD2_PROXY_INBOUND_LISTEN_ADDR"
	callerHeader    = "l5d-client-id"
)

// Wanted reports whether this program was started as a proxy.
func Wanted() bool { return os.Getenv(inboundListener) != "" }

// Main returns the proxy. It returns the program's exit status.
func Main() int {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1 // it does not end by itself
}

// certified has the certificate and the roots of a proxy, once identity has answered.
type certified struct {
	own   tls.Certificate
	roots *x509.CertPool
}

func run(ctx context.Context) error {
	c, err := certify(ctx)
	if err != nil {
		return fmt.Errorf("getting a certificate: %w", err)
	}
	destinations, err := grpc.NewClient(os.Getenv("LINKERD2_PROXY_DESTINATION_SVC_ADDR"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	ready := http.NewServeMux()
	ready.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ready") })
	ended := make(chan error)
	serve := func(variable string, redirected bool, handler http.Handler) error {
		listener, err := net.Listen("tcp", os.Getenv(variable))
		if err != nil {
			return err
		}
		if redirected {
			listener = accept(listener, c)
		}
		server := &http.Server{Handler: handler, ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		}}
		go func() { ended <- server.Serve(listener) }()
		return nil
	}
	if err := serve(inboundListener, true, inbound()); err != nil {
		return err
	}
	if err := serve("LINKERD2_PROXY_OUTBOUND_LISTEN_ADDR", true, outbound(c, destination.NewDestinationClient(destinations))); err != nil {
		return err
	}
	if err := serve("LINKERD2_PROXY_ADMIN_LISTEN_ADDR", false, ready); err != nil { // last: it answers when the others do
		return err
	}
	return <-ended
}

// certify requests a certificate with the token and the request of the proxy's folders.
func certify(ctx context.Context) (c certified, err error) {
	dir := os.Getenv("LINKERD2_PROXY_IDENTITY_DIR")
	token, err := os.ReadFile(os.Getenv("LINKERD2_PROXY_IDENTITY_TOKEN_FILE"))
	if err != nil {
		return c, err
	}
	request, err := os.ReadFile(filepath.Join(dir, "csr.der"))
	if err != nil {
		return c, err
	}
	der, err := os.ReadFile(filepath.Join(dir, "key.p8"))
	if err != nil {
		return c, err
	}
	if c.own.PrivateKey, err = x509.ParsePKCS8PrivateKey(der); err != nil {
		return c, err
	}
	conn, err := grpc.NewClient(os.Getenv("LINKERD2_PROXY_IDENTITY_SVC_ADDR"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return c, err
	}
	defer conn.Close()
	answer, err := identity.NewIdentityClient(conn).Certify(ctx, &identity.CertifyRequest{
		Identity: os.Getenv("LINKERD2_PROXY_IDENTITY_LOCAL_NAME"), Token: token, CertificateSigningRequest: request,
	}, grpc.WaitForReady(true))
	if err != nil {
		return c, err
	}
	c.own.Certificate = append([][]byte{answer.GetLeafCertificate()}, answer.GetIntermediateCertificates()...)
	c.roots = x509.NewCertPool()
	if !c.roots.AppendCertsFromPEM([]byte(os.Getenv("LINKERD2_PROXY_IDENTITY_TRUST_ANCHORS"))) {
		return c, errors.New("reading the trust anchors: want PEM")
	}
	return c, nil
}

// redirected is a connection to a proxy that was one to somewhere else.
type redirected struct {
	net.Conn
	to     netip.AddrPort
	caller string // that its certificate names; "" = none
}

type connKey struct{}

func of(r *http.Request) *redirected { return r.Context().Value(connKey{}).(*redirected) }

// queue is a listener whose connections are made ready by goroutines.
type queue struct {
	net.Listener
	ready chan net.Conn
	ended chan error // holds why there are no more
}

func (q queue) Accept() (net.Conn, error) {
	select {
	case conn := <-q.ready:
		return conn, nil
	case err := <-q.ended:
		return nil, err
	}
}

// accept takes connections in plaintext, and over TLS with a certificate of the mesh or none.
func accept(listener net.Listener, c certified) net.Listener {
	q := queue{listener, make(chan net.Conn), make(chan error, 1)}
	config := &tls.Config{Certificates: []tls.Certificate{c.own}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: c.roots}
	go func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				q.ended <- err
				return
			}
			go func() {
				conn, err := begin(raw.(*net.TCPConn), config)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					raw.Close()
					return
				}
				q.ready <- conn
			}()
		}
	}()
	return q
}

// peeked is a connection whose first bytes were looked at.
type peeked struct {
	net.Conn
	reader *bufio.Reader
}

func (p peeked) Read(b []byte) (int, error) { return p.reader.Read(b) }

func begin(raw *net.TCPConn, config *tls.Config) (*redirected, error) {
	to, err := original(raw)
	if err != nil {
		return nil, err
	}
	p := peeked{raw, bufio.NewReader(raw)}
	first, err := p.reader.Peek(1)
	if err != nil {
		return nil, err
	}
	const handshake = 22 // type of a TLS record
	if first[0] != handshake {
		return &redirected{Conn: p, to: to}, nil
	}
	conn := tls.Server(p, config)
	if err := conn.Handshake(); err != nil {
		return nil, err
	}
	r := &redirected{Conn: conn, to: to}
	if peers := conn.ConnectionState().PeerCertificates; len(peers) > 0 {
		r.caller = peers[0].Subject.CommonName
	}
	return r, nil
}

// original returns the destination of a connection before the kernel redirected it (SO_ORIGINAL_DST).
func original(conn *net.TCPConn) (to netip.AddrPort, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return to, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		// A sockaddr_in has the size of the structure that this reads.
		var address *unix.IPv6Mreq
		if address, err = unix.GetsockoptIPv6Mreq(int(fd), syscall.SOL_IP, unix.SO_ORIGINAL_DST); err == nil {
			b := address.Multiaddr
			to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:4]))
		}
	})
	return to, errors.Join(controlErr, err)
}

// inbound passes requests on to the application of this pod.
func inbound() http.Handler {
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		conn := of(r.In)
		r.Out.URL.Scheme, r.Out.URL.Host = "http", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(conn.to.Port())))
		r.Out.Host = r.In.Host
		r.Out.Header.Del(callerHeader)
		if conn.caller != "" {
			r.Out.Header.Set(callerHeader, conn.caller)
		}
	}}
}

// outbound passes requests on to an endpoint of the service that they were sent to.
func outbound(c certified, destinations destination.DestinationClient) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "https", of(r.In).to.String()
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{DialTLSContext: func(ctx context.Context, network, service string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			endpoint, name, err := lookUp(ctx, destinations, service)
			if err != nil {
				return nil, fmt.Errorf("looking %s up: %w", service, err)
			}
			dialer := tls.Dialer{Config: &tls.Config{Certificates: []tls.Certificate{c.own}, RootCAs: c.roots, ServerName: name}}
			return dialer.DialContext(ctx, network, endpoint)
		}},
	}
}

// lookUp finds an endpoint of a service by its address, and the name that the endpoint's certificate has.
func lookUp(ctx context.Context, destinations destination.DestinationClient, service string) (endpoint, name string, err error) {
	ctx, cancel := context.WithCancel(ctx) // ends both streams
	defer cancel()
	token := os.Getenv("LINKERD2_PROXY_DESTINATION_CONTEXT")
	profiles, err := destinations.GetProfile(ctx, &destination.GetDestination{Path: service, ContextToken: token})
	if err != nil {
		return "", "", err
	}
	profile, err := profiles.Recv()
	if err != nil {
		return "", "", err
	}
	_, port, err := net.SplitHostPort(service)
	if err != nil {
		return "", "", err
	}
	updates, err := destinations.Get(ctx, &destination.GetDestination{Path: net.JoinHostPort(profile.GetFullyQualifiedName(), port), ContextToken: token})
	if err != nil {
		return "", "", err
	}
	for {
		update, err := updates.Recv()
		if err != nil {
			return "", "", err
		}
		if all := update.GetAdd().GetAddrs(); len(all) > 0 {
			var ip [4]byte
			binary.BigEndian.PutUint32(ip[:], all[0].GetAddr().GetIp().GetIpv4())
			to := netip.AddrPortFrom(netip.AddrFrom4(ip), uint16(all[0].GetAddr().GetPort()))
			return to.String(), all[0].GetTlsIdentity().GetDnsLikeIdentity().GetName(), nil
		}
	}
}

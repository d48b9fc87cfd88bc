package clusterprometheus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

const (
	// requestTimeout bounds one request.
	requestTimeout = 15 * time.Second
	// maxAnswer bounds the bytes of an answer that are read.
	maxAnswer = 64 << 20
)

// client asks one Prometheus.
type client struct {
	api  promv1.API
	idle func() // ends connections that are not in use
}

// open returns a client of the Prometheus at an address that is not to be found. It sends nothing.
func open(o Options) (*client, error) {
	a, headers := o.Address, http.Header{}
	if o.Token != "" {
		headers.Set("Authorization", "Bearer "+o.Token)
	}
	if o.Tenant != "" {
		headers.Set(o.TenantHeader, o.Tenant)
	}
	base, transport := a.URL, http.DefaultTransport.(*http.Transport).Clone()
	if o.Roots != nil {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(o.Roots) {
			return nil, errors.New("the root certificates have no certificate")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	var trip http.RoundTripper = transport
	idle := transport.CloseIdleConnections
	if a.URL == "" {
		through, err := rest.HTTPClientFor(o.Cluster)
		if err != nil {
			return nil, err
		}
		server, _, err := rest.DefaultServerUrlFor(o.Cluster)
		if err != nil {
			return nil, err
		}
		trip, base, idle = through.Transport, strings.TrimRight(server.String(), "/")+a.Service.proxyPath(), func() {} // client-go's connections are shared
		headers.Del("Authorization")                                                                                   // the API server takes that of the kubeconfig
		if trip == nil {
			trip = transport
		}
	}
	connection, err := api.NewClient(api.Config{Address: base, Client: &http.Client{
		Transport: reading{trip, headers}, Timeout: requestTimeout,
		CheckRedirect: func(to *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it redirects to %s: want the address of the API itself", to.URL.Host)
		},
	}})
	if err != nil {
		return nil, err
	}
	return &client{api: promv1.NewAPI(connection), idle: idle}, nil
}

// reading makes the requests of the official client ones that only read: it sends queries by POST, for which the API
// server wants the right to create services/proxy.
type reading struct {
	next    http.RoundTripper
	headers http.Header // that each request has
}

// RoundTrip implements http.RoundTripper.
func (t reading) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Method == http.MethodPost {
		form, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close() // it is in memory
		r.Method, r.Body, r.GetBody, r.ContentLength, r.URL.RawQuery = http.MethodGet, nil, nil, 0, string(form)
		r.Header.Del("Content-Type")
	}
	maps.Copy(r.Header, t.headers)
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = &limited{ReadCloser: response.Body}
	return response, nil
}

// limited fails instead of reading more than maxAnswer bytes of a body.
type limited struct {
	io.ReadCloser
	read int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.read += int64(n); l.read > maxAnswer {
		return n, fmt.Errorf("its answer has more than %d bytes", int64(maxAnswer))
	}
	return n, err
}

// explain shortens an error of the official client to what it says of the Prometheus, without the query.
func explain(err error) error {
	var sent *url.Error
	if errors.As(err, &sent) {
		return sent.Err
	}
	var answered *promv1.Error
	if !errors.As(err, &answered) {
		return err
	}
	text := answered.Msg
	var stated struct{ Message, Error string } // by the API server, and by Prometheus
	if json.Unmarshal([]byte(answered.Detail), &stated) == nil && stated.Message+stated.Error != "" {
		text += ": " + stated.Message + stated.Error
	}
	const enough = 300
	if text, _, _ = strings.Cut(text, "\n"); len(text) > enough {
		text = text[:enough]
	}
	return fmt.Errorf("%s: %s", answered.Type, text)
}

// query evaluates an expression at a moment; zero = now, by the clock of the Prometheus.
func (c *client) query(ctx context.Context, expr string, at time.Time) (model.Value, error) {
	result, _, _, err := c.api.Query(ctx, expr, at)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, explain(err)
	}
	if result == nil { // the client takes any JSON object for an answer
		return nil, errors.New("its answer has no result")
	}
	return result, nil
}

// clock returns by how much the clock of the Prometheus is ahead of this machine's.
func (c *client) clock(ctx context.Context) (ahead time.Duration, err error) {
	before := time.Now()
	result, err := c.query(ctx, "time()", time.Time{})
	after := time.Now()
	if err != nil {
		return 0, err
	}
	now, ok := result.(*model.Scalar)
	if !ok {
		return 0, fmt.Errorf("its answer is a %s: want a number", result.Type())
	}
	half := after.Sub(before) / 2
	theirs := time.UnixMilli(int64(float64(now.Value) * 1000))
	return theirs.Sub(before.Add(half)), nil
}

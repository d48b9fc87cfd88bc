// Package httpget sends HTTP requests to the programs of a run and checks the
// answers: anything but 200 is an error that names the URL, the status and the
// beginning of the body. It does not retry; process.WaitReady does.
package httpget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

const (
	maxBody  = 1 << 30 // bytes of a body; a dump of an Envoy's configuration in a large mesh has tens of megabytes
	maxShown = 1 << 10 // bytes of a body that an error shows
)

// StatusError is an answer with a status other than 200 OK.
type StatusError struct {
	Method, URL string
	Status      string // code and text, as in "503 Service Unavailable"
	Code        int
	Body        string // its first kilobyte, trimmed
}

// Error returns the error as `GET http://127.0.0.1:80/ready: 503 Service Unavailable: starting`.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s %s: %s", e.Method, e.URL, e.Status)
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// TimedOut reports whether the error of a request, or of a connection, is that no answer came in time.
func TimedOut(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// Get returns the body of the response to a GET of url. A nil client means
// http.DefaultClient. A status other than 200 is a *StatusError.
func Get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return Do(client, request)
}

// Do is like Get, for any request.
func Do(client *http.Client, request *http.Request) ([]byte, error) {
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	limit := int64(maxBody)
	if response.StatusCode != http.StatusOK {
		limit = maxShown
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, &StatusError{
			request.Method, request.URL.Redacted(), response.Status, response.StatusCode,
			string(bytes.TrimSpace(body[:min(len(body), maxShown)])),
		}
	case err != nil:
		return nil, fmt.Errorf("reading the answer to %s %s: %w", request.Method, request.URL.Redacted(), err)
	case len(body) > maxBody:
		return nil, fmt.Errorf("reading the answer to %s %s: more than %d bytes", request.Method, request.URL.Redacted(), maxBody)
	}
	return body, nil
}

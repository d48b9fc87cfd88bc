// Package grafana gets scaler's dashboards into a Grafana: into one that runs, over its
// HTTP API, or into one that it starts, from a program of this machine or with Docker,
// provisioned with the Prometheus that holds a run.
//
// Package dashboards contains the dashboards.
package grafana

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"scaler.mesh/scaler/dashboards"
)

// requestTimeout bounds one request to a Grafana.
const requestTimeout = 30 * time.Second

// answerLimit limits the bytes read of a response.
const answerLimit = 1 << 20

// Target is a Grafana that runs.
type Target struct {
	// URL is the address of its pages, such as https://grafana.example/sub; it may
	// contain a user and a password.
	URL string
	// Token is the token of a service account; "" means none.
	Token string
}

// Pushed is a dashboard that a Grafana has accepted.
type Pushed struct {
	UID   string `json:"uid"`
	Title string `json:"title"`
	URL   string `json:"url"` // of its page
}

// ParseURL checks the URL of a Grafana.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("got %q, want the address of a Grafana, as in http://localhost:3000", WithoutCredentials(text))
	}
	return u, nil
}

// WithoutCredentials returns a form of a URL that may be printed, whether the URL can be
// parsed or not. The part before the last @ may contain a password and the part after the
// first ? or # a token, so both are left out.
func WithoutCredentials(text string) string {
	at, query := strings.LastIndexByte(text, '@'), strings.IndexAny(text, "?#")
	if query >= 0 && at > query { // a password with ?, or a token with @
		return "..."
	}
	if query >= 0 {
		text = text[:query+1] + "..."
	}
	if at >= 0 {
		return "..." + text[at:]
	}
	return text
}

// Push creates the folder for scaler's dashboards if it is missing, and writes all of
// them into it, replacing those of earlier versions.
func Push(ctx context.Context, to Target, all []dashboards.Dashboard) ([]Pushed, error) {
	base, err := ParseURL(to.URL)
	if err != nil {
		return nil, err
	}
	c := client{base: base, token: to.Token, http: &http.Client{Timeout: requestTimeout}}
	defer c.http.CloseIdleConnections()
	if err := c.ensureFolder(ctx); err != nil {
		return nil, fmt.Errorf("making folder %s: %w", dashboards.FolderTitle, err)
	}
	var pushed []Pushed
	for _, d := range all {
		var answer struct{ URL string }
		err := c.call(ctx, http.MethodPost, "/api/dashboards/db", map[string]any{
			"dashboard": d.JSON, "folderUid": dashboards.FolderUID, "overwrite": true, "message": "written by scaler",
		}, &answer)
		if err != nil {
			return pushed, fmt.Errorf("writing dashboard %s: %w", d.UID, err)
		}
		pushed = append(pushed, Pushed{UID: d.UID, Title: d.Title, URL: c.page(answer.URL)})
	}
	return pushed, nil
}

// client asks one Grafana.
type client struct {
	base  *url.URL
	token string
	http  *http.Client
}

func (c client) ensureFolder(ctx context.Context) error {
	err := c.call(ctx, http.MethodGet, "/api/folders/"+dashboards.FolderUID, nil, nil)
	if answered, ok := errors.AsType[*statusError](err); !ok || answered.code != http.StatusNotFound {
		return err
	}
	err = c.call(ctx, http.MethodPost, "/api/folders", map[string]string{"uid": dashboards.FolderUID, "title": dashboards.FolderTitle}, nil)
	if answered, ok := errors.AsType[*statusError](err); ok && (answered.code == http.StatusConflict || answered.code == http.StatusPreconditionFailed) {
		return nil // another client created it meanwhile
	}
	return err
}

// call sends body, unless it is nil, and decodes the answer to into, unless that is
// nil. An answer other than 2xx is a *statusError.
func (c client) call(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(data)
	}
	to := *c.base
	to.User = nil // else it would be in errors
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(to.String(), "/")+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if password, ok := c.base.User.Password(); ok {
		request.SetBasicAuth(c.base.User.Username(), password)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", request.URL, err)
	}
	if response.StatusCode/100 != 2 {
		return newStatusError(request.URL.String(), response, answer)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("%s answers what no Grafana does: %w", request.URL, err)
	}
	return nil
}

// page returns the address of a page that Grafana names by its path. That path includes
// the part of the base's path that Grafana knows.
func (c client) page(path string) string {
	to := *c.base
	to.User, to.Path = nil, ""
	return to.String() + path
}

// statusError is an answer other than 2xx.
type statusError struct {
	url, status, message string
	code                 int
}

func newStatusError(url string, response *http.Response, body []byte) *statusError {
	var answer struct{ Message string }
	_ = json.Unmarshal(body, &answer) // of something else there is no message
	return &statusError{url: url, status: response.Status, message: answer.Message, code: response.StatusCode}
}

func (e *statusError) Error() string {
	text := e.url + " answers " + e.status
	if e.message != "" {
		text += ": " + e.message
	}
	switch e.code {
	case http.StatusUnauthorized:
		return text + ": want the token of a service account"
	case http.StatusForbidden:
		return text + ": want a service account whose role is Editor"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		if e.message == "" {
			return text + ": want the address of a Grafana"
		}
	}
	return text
}

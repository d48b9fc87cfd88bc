package httpget

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestGet(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ready":
			w.Write([]byte("LIVE\n"))
		case "/short":
			w.Header().Set("Content-Length", "10")
			w.Write([]byte("LIVE\n"))
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		default:
			http.Error(w, "starting"+strings.Repeat("!", 5000), http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	at := func(path string) (string, error) {
		body, err := Get(t.Context(), server.Client(), server.URL+path)
		return string(body), err
	}

	if body, err := at("/ready"); body != "LIVE\n" || err != nil {
		t.Errorf("got %q, %v, want the body", body, err)
	}
	body, err := at("/other")
	want := "GET " + server.URL + "/other: 503 Service Unavailable: starting!!!"
	if body != "" || err == nil || !strings.HasPrefix(err.Error(), want) || len(err.Error()) > maxShown+100 {
		t.Errorf("got %q, %v, want no body and the error %s...", body, err, want)
	}
	status, ok := errors.AsType[*StatusError](err)
	if !ok || status.Code != http.StatusServiceUnavailable {
		t.Errorf("got %#v, want a *StatusError of 503", err)
	}
	if _, err := at("/empty"); err == nil || !strings.HasSuffix(err.Error(), "/empty: 204 No Content") {
		t.Errorf("got %v, want an error with the status alone", err)
	}
	if _, err := at("/short"); err == nil || !strings.Contains(err.Error(), "reading the answer to GET "+server.URL+"/short") {
		t.Errorf("got %v for a body that ends early", err)
	}
	if _, err := Get(t.Context(), nil, "http://%"); err == nil {
		t.Error("no error for what is no URL")
	}
}

package run

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/record"
)

func TestCollect(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		asked  int
		want   string // of the error; "" = none
	}{
		"done":    {http.StatusOK, 2, ""}, // pools outlive one
		"refused": {http.StatusForbidden, 1, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.WriteHeader(c.status)
			}))
			defer server.Close()
			err := collect(t.Context(), server.Client(), server.URL+"/debug/pprof/heap?gc=1")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if got := int(asked.Load()); got != c.asked {
				t.Errorf("asked %d times, want %d", got, c.asked)
			}
		})
	}
}

func TestSetCollected(t *testing.T) {
	mean, live := 2e8, 1.5e8
	for _, c := range []struct {
		name string
		has  *record.Level
		live *float64
		want *record.Level
	}{
		{"mean and end known", &record.Level{Mean: &mean}, &live, &record.Level{Mean: &mean, Collected: &live}},
		{"mean and end unknown", nil, &live, &record.Level{Collected: &live}},
		{"not collected", &record.Level{Mean: &mean}, nil, &record.Level{Mean: &mean}},
		{"nothing known", nil, nil, nil},
	} {
		u := &record.Usage{HeapBytes: c.has}
		setCollected(u, c.live)
		if diff := cmp.Diff(c.want, u.HeapBytes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

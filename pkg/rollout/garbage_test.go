package rollout

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
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

package guard

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"apiserver-p99>1s", "apiserver-p99>1s"},
		{" pending-pods > 20 , control-plane-cores>0.5", "pending-pods>20,control-plane-cores>0.5"},
		{"apiserver-p99>1500us", "apiserver-p99>1.5ms"},
		// A limit is recorded as it was given.
		{"apiserver-p99>1ns", "apiserver-p99>1ns"},
		{"pending-pods>12345,control-plane-cores>0.12345", "pending-pods>12345,control-plane-cores>0.12345"},
	} {
		got, err := Parse("", c.text)
		if err != nil || got.String() != c.want {
			t.Errorf("%q: %q, %v, want %q", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{
		",", "apiserver-p99", "apiserver-p99>1", "apiserver-p99>-1s", "pending-pods>1.5", "pending-pods>-1", "pending-pods<1",
		"control-plane-cores>NaN", "control-plane-cores>Inf", "restarts>0", "pending-pods>1,", "pending-pods>1,pending-pods>2",
	} {
		if got, err := Parse("place.abortIf", text); err == nil || !strings.HasPrefix(err.Error(), "place.abortIf: got ") {
			t.Errorf("%q: %v, %v, want an error of the field", text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("apiserver-p99>1s,pending-pods>20,control-plane-cores>4")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse("", text)
		if err != nil {
			return
		}
		again, err := Parse("", got.String())
		if err != nil || !slices.Equal(got, again) {
			t.Errorf("%q is %q, and read again %q, %v", text, got, again, err)
		}
	})
}

// of makes so many requests that take as long, one after the other.
func of(r *Requests, requests int, took time.Duration) {
	for range requests {
		end := r.begin()
		time.Sleep(took) //nolint:forbidigo // of the bubble's clock
		end()
	}
}

func TestP99(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRequests()
		of(r, 99, 10*time.Millisecond)
		if got, ok := r.P99(); ok {
			t.Errorf("of 99 requests: %v, want none", got)
		}
		of(r, 1, time.Second)
		if got, ok := r.P99(); !ok || got != 10*time.Millisecond {
			t.Errorf("one slow of 100: %v, %v, want 10ms", got, ok)
		}
		of(r, 1, time.Second)
		if got, _ := r.P99(); got != time.Second {
			t.Errorf("two slow of 101: %v, want 1s", got)
		}
		time.Sleep(Window + time.Second) //nolint:forbidigo // of the bubble's clock
		if got, ok := r.P99(); ok {
			t.Errorf("after the window: %v, want none", got)
		}
	})
}

// A server that does not answer is not one without requests.
func TestP99OfRequestsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRequests()
		for range enough {
			r.begin()
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // of the bubble's clock
		if got, ok := r.P99(); !ok || got != 2*time.Second {
			t.Errorf("%v, %v, want 2s", got, ok)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

func TestWatchesAreNotMeasured(t *testing.T) {
	r := NewRequests()
	wrapped := r.Wrap(roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }))
	for range enough {
		for _, path := range []string{"/api/v1/pods?watch=true", "/api/v1/pods?watch=1"} {
			q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+path, nil)
			_, _ = wrapped.RoundTrip(q)
		}
	}
	if got, ok := r.P99(); ok {
		t.Errorf("of watches: %v, want none", got)
	}
	for range enough {
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/api/v1/pods", nil)
		_, _ = wrapped.RoundTrip(q)
	}
	if _, ok := r.P99(); !ok {
		t.Error("requests that fail are not measured")
	}
}

func TestGuard(t *testing.T) {
	window := int(Window / every)
	for _, c := range []struct {
		name, conditions string
		pending          int
		cores            []float64 // one for each check
		want             string    // "" = the run goes on
	}{
		{name: "slow API server", conditions: "apiserver-p99>100ms", want: "apiserver-p99 is 200ms, and place.abortIf has apiserver-p99>100ms"},
		{name: "at the limit", conditions: "apiserver-p99>200ms"},
		{name: "pods", conditions: "pending-pods>2", pending: 3, want: "pending-pods is 3"},
		{name: "few pods", conditions: "pending-pods>3", pending: 3},
		{name: "second of two", conditions: "apiserver-p99>1s,pending-pods>2", pending: 3, want: "pending-pods is 3"},
		{name: "cores", conditions: "control-plane-cores>2", cores: constant(window, 3), want: "control-plane-cores is 3"},
		{name: "cores, not for long enough", conditions: "control-plane-cores>2", cores: constant(window-1, 3)},
		{name: "cores, for a moment", conditions: "control-plane-cores>2", cores: append(constant(window, 1), 5)},
	} {
		synctest.Test(t, func(t *testing.T) {
			conditions, err := Parse("", c.conditions)
			if err != nil {
				t.Fatal(err)
			}
			requests := NewRequests()
			of(requests, 100, 200*time.Millisecond)
			checked := 0
			g := &Guard{
				Conditions: conditions, Requests: requests,
				Pending: func(context.Context) (int, error) { return c.pending, nil },
				Cores: func() (float64, bool) {
					if checked++; checked > len(c.cores) {
						return 0, false
					}
					return c.cores[checked-1], true
				},
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(max(1, len(c.cores)))*every+every/2)
			defer cancel()
			if err := g.Run(ctx); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
		})
	}
}

func constant(n int, value float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = value
	}
	return all
}

func TestGuardFailsWithPending(t *testing.T) {
	g := &Guard{Conditions: Conditions{{PendingPods, 1}}, Pending: func(context.Context) (int, error) { return 0, errors.New("forbidden") }}
	if err := g.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "checking place.abortIf pending-pods>1: forbidden") {
		t.Errorf("%v", err)
	}
}

// A run is refused by the first condition that holds, and by what cannot be measured.
func TestRefuse(t *testing.T) {
	now := map[Subject]float64{APIServerP99: 0.25, PendingPods: 3, ControlPlaneCores: 1.5}
	unknown := errors.New("not known")
	for _, c := range []struct{ conditions, want string }{
		{"apiserver-p99>250ms,pending-pods>3,control-plane-cores>1.5", ""},
		{"apiserver-p99>200ms", "apiserver-p99 is 250ms before the run, and place.refuseIf has apiserver-p99>200ms"},
		{"apiserver-p99>1s,control-plane-cores>1,pending-pods>1", "control-plane-cores is 1.5 before the run, and place.refuseIf has control-plane-cores>1"},
	} {
		conditions, err := Parse("", c.conditions)
		if err != nil {
			t.Fatal(err)
		}
		err = conditions.Refuse(t.Context(), func(_ context.Context, s Subject) (float64, error) { return now[s], nil })
		switch {
		case c.want == "" && err == nil:
		case c.want == "" || !errors.Is(err, ErrLoaded) || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %q", c.conditions, err, c.want)
		}
		err = conditions.Refuse(t.Context(), func(context.Context, Subject) (float64, error) { return 0, unknown })
		if !errors.Is(err, unknown) || errors.Is(err, ErrLoaded) {
			t.Errorf("%s, where nothing is known: %v", c.conditions, err)
		}
	}
}

// The second slowest of 100 requests is their 99th percentile.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		p99, err := Probe(t.Context(), func(context.Context) error {
			n++
			time.Sleep(time.Duration(n) * time.Millisecond) //nolint:forbidigo // of the bubble's clock
			return nil
		})
		if err != nil || n != 100 || p99 != 99*time.Millisecond {
			t.Errorf("%v after %d requests, %v, want 99ms after 100", p99, n, err)
		}
	})
	refused := errors.New("refused")
	if _, err := Probe(t.Context(), func(context.Context) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("%v, want the error of a request", err)
	}
}

package measure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A program's own metrics are readings of its life, until it was started again.
func TestOfMetrics(t *testing.T) {
	var begin, failures atomic.Int64
	begin.Store(time.Now().Add(-time.Hour).Unix())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if failures.Add(-1) >= 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 12.34\nprocess_resident_memory_bytes 1.5e+08\n"+
			"process_start_time_seconds %d\ngo_threads 11\nprocess_open_fds 42 1700000000000\nprocess_other{a=\"b c\"} 1\n", begin.Load())
	}))
	defer server.Close()
	source := OfMetrics(t.Context(), "istiod", server.URL)
	started, err := source.Started()
	if err != nil || started.Unix() != begin.Load() {
		t.Fatalf("started at %v, %v, want %d", started, err, begin.Load())
	}
	failures.Store(1) // one is made up for
	before := time.Now()
	reading, err := source.Read()
	if err != nil {
		t.Fatal(err)
	}
	if reading.CPU != 12340*time.Millisecond || reading.Resident != 150_000_000 || reading.Threads != 11 || reading.Files != 42 || reading.Waited != -1 {
		t.Errorf("read %+v", reading)
	}
	if reading.At.Before(before) || reading.At.After(time.Now()) {
		t.Errorf("the reading is of %v, not of its request", reading.At)
	}
	failures.Store(2)
	if _, err := source.Read(); err == nil || errors.Is(err, ErrEnded) {
		t.Errorf("two failures give %v, want an error that is not the end", err)
	}
	begin.Add(60)
	if _, err := source.Read(); !errors.Is(err, ErrEnded) {
		t.Errorf("after a restart: %v, want ErrEnded", err)
	}
}

// A clock that is ahead does not make a life begin after its first reading.
func TestOfMetricsAhead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "process_cpu_seconds_total 1\nprocess_resident_memory_bytes 1\nprocess_start_time_seconds %d\n", time.Now().Add(time.Hour).Unix())
	}))
	defer server.Close()
	started, err := OfMetrics(t.Context(), "istiod", server.URL).Started()
	if err != nil || started.After(time.Now()) {
		t.Errorf("started at %v, %v, want no later than now", started, err)
	}
}

func TestOfMetricsWithoutUsage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "up 1") }))
	defer server.Close()
	if _, err := OfMetrics(t.Context(), "istiod", server.URL).Started(); err == nil {
		t.Error("metrics without usage are read")
	}
}

// A program that does not answer for some time is read when it answers again; one that refuses is not asked for long.
func TestReadingOfABusyProgram(t *testing.T) {
	timeout := &url.Error{Op: "Get", URL: "http://127.0.0.1:1/metrics", Err: context.DeadlineExceeded}
	refused := &url.Error{Op: "Get", URL: "http://127.0.0.1:1/metrics", Err: errors.New("connection refused")}
	for _, c := range []struct {
		name     string
		fails    int
		err      error
		reads    bool
		requests int
	}{
		{"answers", 0, nil, true, 1},
		{"refuses once", 1, refused, true, 2},
		{"refuses", 100, refused, false, 2},
		{"is busy for 15 s", 5, timeout, true, 6},
		{"is busy", 100, timeout, false, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				s := &scraped{name: "istiod", url: "http://127.0.0.1:1/metrics", get: func() ([]byte, error) {
					if requests++; requests > c.fails {
						return fmt.Appendln(nil, "process_cpu_seconds_total 1\nprocess_resident_memory_bytes 2\nprocess_start_time_seconds 3"), nil
					}
					if c.err == error(timeout) {
						<-time.After(scrapeTimeout) // of the synctest bubble
					}
					return nil, c.err
				}}
				_, err := s.Read()
				if (err == nil) != c.reads || requests != c.requests {
					t.Errorf("%v after %d requests, want %d", err, requests, c.requests)
				}
			})
		})
	}
}

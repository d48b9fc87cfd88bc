package measure

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
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

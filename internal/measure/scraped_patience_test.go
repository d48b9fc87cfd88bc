package measure

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

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

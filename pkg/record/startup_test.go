package record

import (
	"testing"
	"time"
)

func TestWithoutKwok(t *testing.T) {
	at := func(milliseconds int) time.Time { return time.UnixMilli(int64(1000 + milliseconds)) }
	whole := Startup{Seen: at(0), Scheduled: at(100), IP: at(400), Notified: at(1000), Ready: at(1700)}
	for name, test := range map[string]struct {
		change func(*Startup)
		want   time.Duration
		known  bool
	}{
		"both stages":         {func(*Startup) {}, 700 * time.Millisecond, true},
		"in one change":       {func(s *Startup) { s.Scheduled, s.Notified = s.IP, s.Ready }, 1700 * time.Millisecond, true},
		"with a node at once": {func(s *Startup) { s.Scheduled = s.Seen }, 600 * time.Millisecond, true},
		"no node":             {func(s *Startup) { s.Scheduled = time.Time{} }, 0, false},
		"no address":          {func(s *Startup) { s.IP = time.Time{} }, 0, false},
		"no report":           {func(s *Startup) { s.Notified = time.Time{} }, 0, false},
		"not ready":           {func(s *Startup) { s.Ready = time.Time{} }, 0, false},
	} {
		s := whole
		test.change(&s)
		if got, known := s.WithoutKwok(); got != test.want || known != test.known {
			t.Errorf("%s: got %s, %t, want %s, %t", name, got, known, test.want, test.known)
		}
	}
}

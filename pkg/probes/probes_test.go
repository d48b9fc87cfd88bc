package probes

import (
	"slices"
	"testing"
	"time"
)

// A sidecar that had a change at once is the first that had it.
func TestSortedSince(t *testing.T) {
	at := time.Unix(1000, 0)
	got := sortedSince(at, map[string]time.Time{"a": at.Add(2), "b": at.Add(-5), "c": at.Add(1)})
	if want := []time.Duration{0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := sortedSince(at, nil); len(got) != 0 {
		t.Errorf("nobody: got %v", got)
	}
}

package measure

import (
	"strings"
	"testing"
	"time"
)

// A wrong name is an error of the caller: it must not cost the time limit.
func TestScrapedOfUnknownJob(t *testing.T) {
	r := &Recorder{intervals: map[string]time.Duration{"istiod": SampleInterval}} // without a Prometheus to ask
	if err := r.Scraped(t.Context(), time.Now(), "istiod", "etdc"); err == nil || !strings.Contains(err.Error(), `no job "etdc"`) {
		t.Errorf("got %v, want an error that names the unknown job", err)
	}
}

package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTimelineComesBack(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, "run")
	start := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	want := []Moment{
		{Time: start, Programs: map[string]Load{"istiod": {Cores: 0.5, MemoryBytes: 1e8}}, Created: 3},
		{Time: start.Add(time.Second), Created: 5, Ready: 4, Connected: 3, Complete: 2, Converged: 1,
			Responses: map[string]int64{"CDS": 7}, Attempts: 6, Refusals: 2, Certificates: 4},
	}
	for _, m := range want {
		if err := w.Moment(m); err != nil {
			t.Fatal(err)
		}
	}
	run := Run{Dir: w.Dir()} // while it is written
	got, err := run.Timeline()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Moment(want[0]); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

func TestStartupsComeBack(t *testing.T) {
	w := create(t, t.TempDir(), "run")
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	want := []PodStartup{
		{Pod: "a/b", Times: Startup{Seen: at, Ready: at.Add(time.Second)}},
		{Pod: "a/c", Times: Startup{Owner: at, Certified: at}},
	}
	for _, event := range []Event{want[0], WatchLost{Error: string(PodStartup{}.EventKind())}, want[1]} {
		if err := w.Event(event); err != nil {
			t.Fatal(err)
		}
	}
	run := Run{Dir: w.Dir()}
	got, err := run.Startups()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func TestDamagedTimelines(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		moments int
		wrong   string // in the error; "" = none
	}{
		"empty":              {"", 0, ""},
		"last line cut off":  {`{"created":1}` + "\n" + `{"created":`, 1, ""},
		"last line unended":  {`{"created":1}` + "\n" + `{"created":2}`, 1, ""},
		"damage in between":  {`{"created":1}` + "\nx\n" + `{"created":2}` + "\n", 1, "timeline.jsonl, line 2"},
		"of another content": {`{"created":"many"}` + "\n", 0, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			run := Run{Dir: t.TempDir()}
			if err := os.WriteFile(filepath.Join(run.Dir, timelineFile), []byte(test.content), 0o644); err != nil {
				t.Fatal(err)
			}
			moments, err := run.Timeline()
			if len(moments) != test.moments {
				t.Errorf("%d moments: want %d", len(moments), test.moments)
			}
			if test.wrong == "" && err != nil || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
				t.Errorf("error %v: want %q", err, test.wrong)
			}
		})
	}
	run := Run{Dir: t.TempDir()}
	if _, err := run.Timeline(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
}

package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/test/golden"
)

// events returns one event of each kind, with the fields of events.jsonl.
func events() []Event {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	return []Event{
		Step{1, 4, 20, 0.1, 0.5},
		PodStartup{Pod: "a/b", Times: Startup{Seen: at}},
		StreamEnded{"a/b", "lost", 2, 31, "EOF"},
		StreamEnded{Pod: "a/b", Class: "lost"},
		Rejected{"a/b", "CDS", "no such field"},
		TokenFailed{"a/b", "timeout"},
		CertificateFailed{"a/b", 3, "refused"},
		ProbedChange{EndpointAdd, at, 19, []string{"a/c"}, nil, 0.1, 0.9, [][2]float64{{0.1, 1}, {0.9, 18}}, 1},
		FaultBegun{"kill-control-plane"},
		FaultOver{"kill-control-plane", 1.5},
		WatchesBack{new(3), nil, 20},
		WatchLost{"gone"},
		ControlPlaneEnded{"istiod-0", true, "signal: killed"},
		OutOfMemory{1 << 30},
		RealSidecarStarted{"a/b", 1, 100, 101},
		RealSidecarEnded{"a/b", "exit status 1"},
		ObjectsDeleted{1700, 2.5, ""},
		WorkerLost{"worker-0", 15, "EOF"},
		WorkerReplaced{"worker-0", "scaler-worker-0-x", "n1", 4.5},
		ConfigurationRefused{"a/b", []RefusedResource{{"LDS virtualInbound", "bad"}}},
	}
}

// The lines of events.jsonl are read by others: names and shapes stay. -update writes.
func TestEventsAsWritten(t *testing.T) {
	w := create(t, t.TempDir(), "x")
	for _, e := range events() {
		if err := w.Event(e); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(w.Dir(), eventsFile))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		var raw struct {
			Kind   string          `json:"kind"`
			Fields json.RawMessage `json:"fields"`
		}
		if err := json.Unmarshal([]byte(line), &raw); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", raw.Kind, raw.Fields)
	}
	golden.Compare(t, filepath.Join("testdata", "events.txt"), b.String())
	run := Run{Dir: w.Dir()}
	got, err := eventsOf[ProbedChange](&run)
	if diff := cmp.Diff([]ProbedChange{events()[7].(ProbedChange)}, got); err != nil || diff != "" {
		t.Errorf("read back: %v (-want +got):\n%s", err, diff)
	}
}

// Every kind has one type of fields.
func TestEventKindsHaveTypes(t *testing.T) {
	kinds := map[string]string{} // the types
	of := map[string]bool{}
	for _, e := range events() {
		of[string(e.EventKind())] = true
	}
	for name, kind := range parseSource(t).kinds {
		if kinds[kind] != "" {
			t.Errorf("%s and %s have the same kind %s", name, kinds[kind], kind)
		}
		kinds[kind] = name
		if !of[kind] {
			t.Errorf("no event of kind %s in the golden list", kind)
		}
	}
}

// docs/reference/events.md is written from the types here by -update.
func TestEventsDocument(t *testing.T) {
	s := parseSource(t)
	var b strings.Builder
	b.WriteString(`# Events

<!-- Written by "go test ./pkg/record -run EventsDocument -update" from pkg/record. -->

` + "`events.jsonl` in a run's folder has a line for each event: a JSON object with `time`\n(RFC 3339, wall clock), `kind` and `fields`. Readers pass over kinds that they do not know.\n")
	byKind := map[string]string{}
	for name, kind := range s.kinds {
		byKind[kind] = name
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		name := byKind[kind]
		text := strings.Join(strings.Fields(strings.TrimPrefix(s.docs[name], name+" is ")), " ")
		b.WriteString("\n## " + kind + "\n\n" + strings.ToUpper(text[:1]) + text[1:] + "\n\n| field | unit | meaning |\n| --- | --- | --- |\n")
		s.rows(t, &b, "", name)
	}
	golden.Compare(t, filepath.Join("..", "..", "docs", "reference", "events.md"), b.String())
}

// rows writes a struct's fields, those of structs in it below them.
func (s source) rows(t *testing.T, b *strings.Builder, prefix, name string) {
	t.Helper()
	for _, field := range s.fields(name) {
		if field.comment == "" {
			t.Errorf("%s.%s has no comment", name, field.name)
		}
		inner, isList := strings.CutPrefix(field.kind, "[]")
		path := prefix + field.name
		if isList {
			path += "[]"
		}
		if s.structs[inner] != nil {
			s.rows(t, b, path+".", inner)
			continue
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", path, unitOf(field.name, inner), field.comment)
	}
}

// unitOf returns the unit of a field, which its name and type state.
func unitOf(name, kind string) string {
	switch {
	case strings.HasSuffix(strings.ToLower(name), "seconds"):
		return "seconds"
	case strings.HasSuffix(strings.ToLower(name), "bytes"):
		return "bytes"
	case kind == "bool":
		return "true or false"
	case kind == "time.Time":
		return "time"
	case name == "pid" || name == "envoy":
		return "process id"
	case strings.HasPrefix(strings.TrimPrefix(kind, "*"), "int"):
		return "count"
	}
	return "text"
}

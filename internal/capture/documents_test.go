package capture

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"golang.org/x/text/encoding/unicode"
)

// values returns the values of a text, or the error in the last place.
func values(text string) (all []string) {
	err := eachValue(strings.NewReader(text), func(place string, value []byte) error {
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return err
		}
		all = append(all, place+" "+compact.String())
		return nil
	})
	if err != nil {
		all = append(all, err.Error())
	}
	return all
}

func TestEachValue(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"YAML", "a: 1\n---\nb: 2\n", []string{`document 1 {"a":1}`, `document 2 {"b":2}`}},
		{"on the line of the mark", "--- {a: 1}\n--- {b: 2}", []string{`document 1 {"a":1}`, `document 2 {"b":2}`}},
		{"ends of documents", "a: 1\n...\n# after\nb: 2\n...\n", []string{`document 1 {"a":1}`, `document 2 {"b":2}`}},
		{"directives and comments", "# of a tool\n%YAML 1.1\n--- # first\na: 1\n---\n# nothing\n---\n---\t\nb: 2\n", []string{`document 1 {"a":1}`, `document 2 {"b":2}`}},
		{"what looks like a mark", "a: |\n  ---\n  b\nc: ---d\n", []string{`document 1 {"a":"---\nb\n","c":"---d"}`}},
		{"ends of lines of Windows", "a: 1\r\n---\r\nb: |\r\n  x\r\n  y\r\n", []string{`document 1 {"a":1}`, `document 2 {"b":"x\ny\n"}`}},
		{"ends of lines of old", "a: 1\r---\rb: 2\r---\rc: 3", []string{`document 1 {"a":1}`, `document 2 {"b":2}`, `document 3 {"c":3}`}},
		{"JSON by lines", "{\"a\":1}\n{\"b\":2}\n", []string{`document 1: value 1 {"a":1}`, `document 1: value 2 {"b":2}`}},
		{"JSON without ends", `{"a":1}{"b":2} [3]`, []string{`document 1: value 1 {"a":1}`, `document 1: value 2 {"b":2}`, `document 1: value 3 [3]`}},
		{"JSON text sequence", "\x1e{\"a\":1}\n\x1e{\"b\":2}\n", []string{`document 1: value 1 {"a":1}`, `document 1: value 2 {"b":2}`}},
		{"JSON between marks", "{\"a\":1}\n---\n{\"b\":2}\n{\"c\":3}\n", []string{`document 1 {"a":1}`, `document 2: value 1 {"b":2}`, `document 2: value 2 {"c":3}`}},
		{"YAML in braces", "{a: 1,\n b: [x, z]}\n", []string{`document 1 {"a":1,"b":["x","z"]}`}},
		{"YAML in braces, twice", "{a: 1}\n{b: 2}\n", []string{"document 1: something follows the value: want --- between two"}},
		{"JSON that ends", "{\"a\":1}\n{\"b\":", []string{"document 1: value 2: want JSON: unexpected EOF"}},
		{"JSON and more", "{\"a\":1}\nb: 2\n", []string{"document 1: value 2: want JSON: invalid character 'b' looking for beginning of value"}},
		{"a key twice", "a: 1\na: 2\n", []string{"document 1: unmarshal errors:\n  line 2: key \"a\" already set in map"}},
		{"no text", "\x00\x00\x00\x00", []string{"want text in UTF-8 or UTF-16"}},
		{"nothing", "", nil},
		{"a broken archive", "\x1f\x8b\x08", []string{"unpacking it: unexpected EOF"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, values(c.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The same text in other encodings has the same values.
func TestEncodings(t *testing.T) {
	const text = "a: ü\n---\n{\"b\": \"€\"}\n{\"c\": 1}\n"
	want := values(text)
	if len(want) != 3 {
		t.Fatal(want)
	}
	for name, encoding := range map[string]unicode.BOMPolicy{"with a mark": unicode.UseBOM, "without": unicode.IgnoreBOM} {
		for _, order := range []unicode.Endianness{unicode.LittleEndian, unicode.BigEndian} {
			encoded, err := unicode.UTF16(order, encoding).NewEncoder().String(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, values(encoded)); diff != "" {
				t.Errorf("UTF-16 %s, %v: %s", name, order, diff)
			}
		}
	}
	if diff := cmp.Diff(want, values("\ufeff"+text)); diff != "" {
		t.Errorf("UTF-8 with a mark: %s", diff)
	}
	var packed bytes.Buffer
	to := gzip.NewWriter(&packed)
	_, _ = to.Write([]byte("\ufeff" + text))
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, values(packed.String())); diff != "" {
		t.Errorf("packed: %s", diff)
	}
	if got := values(packed.String()[:packed.Len()-4]); !strings.Contains(got[len(got)-1], "unexpected EOF") {
		t.Errorf("packed and cut off: %v", got)
	}
}

// Every form that kubectl, jq and editors write has all objects.
func TestForms(t *testing.T) {
	for _, second := range []string{"istio.jsonl", "istio-pretty.json"} {
		m := readAgain(t, meshOf(t, "json-stream/cluster.json", "json-stream/"+second))
		if len(m.Objects) != 6 || len(m.Workloads) != 2 {
			t.Errorf("%s: %d objects and %d workloads, want 6 and 2", second, len(m.Objects), len(m.Workloads))
		}
	}
	if m := readAgain(t, meshOf(t, "json-stream/crlf-bom.yaml")); len(m.Workloads) != 2 || len(m.Services) != 1 {
		t.Errorf("with a mark: %d workloads and %d services, want 2 and 1", len(m.Workloads), len(m.Services))
	}
	service := func(name, more string) string {
		return fmt.Sprintf(`{%s"metadata":{"name":%q,"namespace":"shop"},"spec":{"ports":[{"port":80}]}}`, more, name)
	}
	const is = `"apiVersion":"v1","kind":"Service",`
	for name, text := range map[string]string{
		"a list of lists":         `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"List","items":[` + service("a", is) + `]},` + service("b", is) + `]}`,
		"an array":                "[" + service("a", is) + "," + service("b", is) + "]",
		"arrays":                  "[[" + service("a", is) + "]]\n[" + service("b", is) + "]",
		"a typed list":            `{"apiVersion":"v1","kind":"ServiceList","items":[` + service("a", "") + "," + service("b", "") + "]}",
		"a list and empty ones":   `{"apiVersion":"v1","kind":"List","items":[]}{"apiVersion":"v1","kind":"PodList","items":null}` + service("a", is) + service("b", is),
		"a sequence in YAML":      "- " + service("a", is) + "\n- " + service("b", is) + "\n",
		"given twice, and others": service("a", is) + service("b", is) + service("b", is) + `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`,
	} {
		m := meshOfText(t, text)
		if len(m.Services) != 2 {
			t.Errorf("%s: %d services, want 2", name, len(m.Services))
		}
		checkCounts(t, m)
	}
	m := meshOfText(t, `{"apiVersion":"v1","kind":"ServiceList","metadata":{"continue":"token","remainingItemCount":7},"items":[`+service("a", "")+"]}")
	if want := (LeftOut{"ServiceList", 7, "the list is incomplete: the rest is not in the file"}); len(m.LeftOut) != 1 || m.LeftOut[0] != want {
		t.Errorf("left out %v, want %v", m.LeftOut, want)
	}
}

// checkCounts checks that what was read was kept or left out with a reason.
func checkCounts(t *testing.T, m Mesh) {
	t.Helper()
	left := map[string]int{}
	for _, l := range m.LeftOut {
		left[l.Kind] += l.Count
	}
	for _, c := range m.Captured {
		if c.Read != c.Kept+left[c.Kind] || c.Kept < 0 {
			t.Errorf("%s: %d read, %d kept, %d left out: %v", c.Kind, c.Read, c.Kept, left[c.Kind], m.LeftOut)
		}
		kept := -1
		switch c.Kind {
		case "services":
			kept = len(m.Services)
		case endpointSlices.name(): // Endpoints are more of them in the mesh
			if !slices.ContainsFunc(m.Captured, func(c Captured) bool { return c.Kind == mirroredKind.name() && c.Kept > 0 }) {
				kept = len(m.Slices)
			}
		default:
			for _, of := range m.ObjectCounts() {
				if of.Kind == c.Kind {
					kept = of.Count
				}
			}
		}
		if kept >= 0 && kept != c.Kept {
			t.Errorf("%s: %d are in the mesh, and %d counted", c.Kind, kept, c.Kept)
		}
	}
}

// A pipe without end is left when the command is interrupted; what is no file is refused.
func TestPipesAndDevices(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if _, err := writer.WriteString("apiVersion: v1\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := FromFiles(ctx, pipe); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a pipe without end: %v", err)
	}
	for _, path := range []string{"/dev/null", "/dev/zero", dir} {
		if _, err := FromFiles(t.Context(), path); err == nil || !strings.Contains(err.Error(), path+": want a file or a pipe") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

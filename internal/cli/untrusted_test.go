package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// What a server of a cluster answers is printed without what a terminal would obey.
func TestAnswersFromElsewhere(t *testing.T) {
	const escapes = "\x1b]0;owned\x07\x1b[2J\u009b31m\r\u202e\nnext"
	var shown, checks bytes.Buffer
	newProgress(&shown).say("waiting: " + escapes)
	if err := printChecks(streams{out: &checks}, "table", []doctor.Result{{Name: "Prometheus", Status: doctor.Warning, Detail: escapes, Fix: escapes}}, "it"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{strings.TrimSuffix(shown.String(), "\n"), strings.ReplaceAll(checks.String(), "\n", "")} {
		if plain := output.Plain(text); text != plain || !strings.Contains(text, "next") {
			t.Errorf("%q, want %q", text, plain)
		}
	}
	if lines := strings.Count(checks.String(), "\n"); lines != 2 {
		t.Errorf("%d lines, want a header and a check: %q", lines, checks.String())
	}
}

// Folders of records from elsewhere may have any names: no command prints what a
// terminal would obey.
func TestNamesOfFoldersFromElsewhere(t *testing.T) {
	const escapes = "\x1b]0;owned\x07\x1b[2J\u009b31m\r\u202e"
	good, damaged := t.TempDir(), t.TempDir()
	for _, side := range []string{"a", "b"} { // the same run twice: they are distinguished by their folders
		w, err := record.Create(filepath.Join(good, side+escapes), "istiod-strict-5")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Save(&record.Run{Status: record.StatusCompleted, Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{5}, Mode: scenario.List[string]{"strict"}}}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(damaged, escapes)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"report", good}, {"report", good, "-o", "json"}, {"report", good, "-o", "yaml"}, {"report", good, "-o", "markdown"}, {"report", good, "-o", "html"},
		{"compare", good, good, "--force"}, {"plan", good, "--pods", "10", "--force"}, {"dashboards", "serve", good},
		{"report", damaged}, {"compare", damaged, damaged}, {"plan", damaged, "--pods", "10"}, {"dashboards", "serve", damaged},
	} {
		var out, stderr bytes.Buffer
		_ = execute(t.Context(), args, io.MultiReader(), &out, &stderr) // whatever comes of it
		for _, text := range []string{out.String(), stderr.String()} {
			for _, r := range text {
				if r != '\n' && r != '\t' && (unicode.IsControl(r) || r == '\u202e') {
					t.Errorf("scaler %v prints %U: %q", args, r, text[:min(len(text), 400)])
					break
				}
			}
		}
	}
}

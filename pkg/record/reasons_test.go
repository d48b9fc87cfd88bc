package record

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/test/golden"
)

// declared returns the constants of type Reason in reasons.go, with their comments.
func declared(t *testing.T) map[Reason]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	all := map[Reason]string{}
	for _, d := range file.Decls {
		list, ok := d.(*ast.GenDecl)
		if !ok || list.Tok != token.CONST {
			continue
		}
		for _, spec := range list.Specs {
			value := spec.(*ast.ValueSpec)
			text, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if value.Names[0].Name != "Reason"+strings.ToUpper(text[:1])+text[1:] {
				t.Errorf("%s is %q", value.Names[0].Name, text)
			}
			all[Reason(text)] = value.Comment.Text()
		}
	}
	return all
}

// filled returns a warning with all that a template wants.
func filled(reason Reason, template string) Warning {
	w := Warning{About: "controlPlane.rollout", Reason: reason, Component: "some-pod-7", Phase: PhaseRollout, Detail: "it ended (exit 1), at once", Values: map[string]float64{}}
	for i, match := range placeholder.FindAllStringSubmatch(template, -1) {
		switch match[1] {
		case "component", "detail", "phase":
			continue
		}
		w.Values[match[1]] = float64(i + 2)
		switch match[2] {
		case "percent":
			w.Values[match[1]] = 0.47
		case "ms":
			w.Values[match[1]] = 0.0123
		}
	}
	return w
}

// Every reason has one sentence, whose values its comment names.
func TestReasonsHaveSentences(t *testing.T) {
	reasons := declared(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(reasons)), slices.Sorted(maps.Keys(sentences))); diff != "" {
		t.Errorf("reasons (-declared +with a sentence):\n%s", diff)
	}
	for reason, template := range sentences {
		w := filled(reason, template)
		text, ok := fill(template, w)
		if !ok || regexp.MustCompile(`[{}\[\]]|%!`).MatchString(text) {
			t.Errorf("%s: %q", reason, text)
		}
		_, values, _ := strings.Cut(reasons[reason], "[")
		values, _, _ = strings.Cut(values, "]")
		for name := range w.Values {
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(values) {
				t.Errorf("%s: its comment does not name the value %s", reason, name)
			}
		}
	}
}

// The sentences of all reasons, as they print. -update writes them.
func TestSentences(t *testing.T) {
	var b strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(sentences)) {
		w := filled(reason, sentences[reason])
		b.WriteString(string(reason) + ": " + w.Sentence() + "\n")
	}
	golden.Compare(t, filepath.Join("testdata", "sentences.txt"), b.String())
}

func TestSentence(t *testing.T) {
	for name, c := range map[string]struct {
		w    Warning
		want string
	}{
		"made of the fields": {Warning{Reason: ReasonLost, Values: map[string]float64{"lost": 2, "all": 40}, Text: "other"}, "2 of 40 did not come by the time limit"},
		"recorded":           {Warning{Text: "something"}, "something"},
		"a value is missing": {Warning{Reason: ReasonLost, Values: map[string]float64{"lost": 2}, Text: "2 lost"}, "2 lost"},
		"of a later schema":  {Warning{Reason: "unheardOf", Text: "something"}, "something"},
		"optional part":      {Warning{Reason: ReasonNotConvergedAgain, Component: "reset [20%] {x}", Values: map[string]float64{"limitSeconds": 600}}, "reset [20%] {x}: the mesh did not converge again within 10m0s"},
		"without it":         {Warning{Reason: ReasonNotConvergedAgain, Values: map[string]float64{"limitSeconds": 0.3}}, "the mesh did not converge again within 300ms"},
		"once":               {Warning{Reason: ReasonSidecarCrashed, Component: "web", Detail: "killed", Values: map[string]float64{"times": 1}}, "web ended once and was started again: killed"},
	} {
		if got := c.w.Sentence(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestNewWarning(t *testing.T) {
	for about, want := range map[string]PhaseName{
		"controlPlane.rollout": PhaseRollout, "controlPlane.steady.heapBytes.collected": PhaseSteady,
		"churn.achievedPerSecond": PhaseChurn, "latencies.push": "", "rows[1]": "", "": "",
	} {
		w := NewWarning(Warning{About: about, Reason: ReasonRestarted, Values: map[string]float64{"restarts": 2}})
		if w.Phase != want || w.Text != "restarted 2 times" {
			t.Errorf("%s: phase %q, text %q", about, w.Phase, w.Text)
		}
	}
}

// Kind distinguishes all but numbers.
func TestWarningKind(t *testing.T) {
	crash := func(pod, detail string) string {
		return Warning{Reason: ReasonSidecarCrashed, Component: pod, Detail: detail, Values: map[string]float64{"times": 1}}.Kind()
	}
	if crash("a-1", "exit 1") != crash("a-2", "exit 2") || crash("a", "exit") == crash("b", "exit") || crash("a", "exit") == crash("a", "killed") {
		t.Error("of the same reason")
	}
	if (Warning{Reason: ReasonSaturated, Component: "istiod"}).Kind() != (Warning{Reason: ReasonSaturated, Component: "reference"}).Kind() {
		t.Error("of a component that the sentence does not name")
	}
	if (Warning{Text: "1.5 late"}).Kind() != (Warning{Text: "2 late"}).Kind() || (Warning{Text: "late"}).Kind() == (Warning{Text: "lost"}).Kind() {
		t.Error("of texts without a reason")
	}
}

// Scripts find text in the JSON, with the fields.
func TestWarningJSON(t *testing.T) {
	got, err := json.Marshal(NewWarning(Warning{About: "own.rollout", Reason: ReasonScrapeGap, Component: "istiod", Values: map[string]float64{"missed": 1, "scrapes": 30}}))
	const want = `{"about":"own.rollout","reason":"scrapeGap","component":"istiod","phase":"rollout","values":{"missed":1,"scrapes":30},"text":"1 of 30 scrapes of istiod were missed"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

package nodetemplate_test

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/nodetemplate"
)

type node struct {
	Pod   string
	Index int
}

func fill(text string, n node) (string, error) {
	t, err := nodetemplate.Parse("--node-id", text)
	if err != nil {
		return "", err
	}
	return nodetemplate.Execute(t, n)
}

func TestTemplates(t *testing.T) {
	long := strings.Repeat("x", nodetemplate.MaxText/2)
	for name, c := range map[string]struct{ text, want, fails string }{
		"fields":                 {`sidecar~{{.Pod}}-{{printf "%03d" .Index}}`, "sidecar~pod-007", ""},
		"a condition":            {`{{if .Pod}}a{{else}}b{{end}}`, "a", ""},
		"a loop":                 {`{{range 1000000000000}}{{end}}`, "", "want no loops"},
		"a loop inside":          {`{{if .Pod}}{{range 1000000000000}}{{end}}{{end}}`, "", "want no loops"},
		"a recursion":            {`{{define "x"}}{{template "x"}}{{end}}{{template "x"}}`, "", "want no templates"},
		"a wide number":          {`{{printf "%999999d" 1}}`, "", "widths below 1000"},
		"a width as it is given": {`{{printf "%*d" 999999 1}}`, "", "widths below 1000"},
		"a long template":        {long + long + long, "", "want 65536 at most"},
		"a long output":          {strings.Repeat(`{{printf "%999d" 1}}`, 2000), "", "more than 1048576 bytes"},
		"no field":               {`{{.Secret}}`, "", "Secret"},
		"no template":            {`{{`, "", "unclosed action"},
	} {
		got, err := fill(c.text, node{"pod", 7})
		if c.fails == "" && (err != nil || got != c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
		if c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.fails)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"{{.Pod}}", `{{printf "%s" .Pod}}`, "{{range 9}}x{{end}}", "{{with .Pod}}{{.}}{{end}}", "{{"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := fill(text, node{"pod", 7}); err == nil && len(got) > nodetemplate.MaxOutput {
			t.Errorf("%q makes %d bytes", text, len(got))
		}
	})
}

package diff

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func pageOf(t *testing.T, r *Result) string {
	t.Helper()
	var b strings.Builder
	if err := Print(&b, "html", r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A page has every group once, holds nothing that a browser would run but its own script, and needs no other file.
func TestPage(t *testing.T) {
	hostile := `"><script>alert(1)</script><img src=x onerror=alert(2)>`
	full := &Result{
		From: Side{Name: hostile, Sidecars: 3, Resources: 5, Bytes: 2048}, To: Side{Name: "istiod 1.31.0", NotQuiet: true}, Sidecars: 3, Changed: 3,
		Effects: []EffectCount{{Effect: ResourceRemoved, What: "the resource is gone", Source: lds, Groups: 1, Sidecars: 1}, {Effect: InPlace, What: "applied in place", Source: rds, Groups: 2, Sidecars: 3}},
		Groups: []Group{
			{Effect: ResourceRemoved, Type: "LDS", Class: "listener", Op: Removed, Resources: []string{hostile}, OfResources: 4, Sidecars: 1, Workloads: []Workload{{"shop", "cart", 1, 2}}},
			{
				Effect: InPlace, Type: "RDS", Class: "route configuration", Op: Changed, Path: "virtual_hosts[*].routes[*].route.timeout",
				Values: []Value{{From: "1s", To: hostile}}, Resources: []string{"80", "81"}, OfResources: 2, Elements: []string{"host-" + hostile}, Sidecars: 3,
				Workloads: []Workload{{"shop", "cart", 2, 2}, {"web", hostile, 1, 1}}, Meaning: &Meaning{Text: hostile, Source: "javascript:alert(3)"},
			},
			{Effect: InPlace, Type: "RDS", Class: "route configuration", Op: Added, Path: "virtual_hosts[*]", Resources: []string{"80"}, OfResources: 2, Elements: []string{"a", "b"}, Sidecars: 1, Workloads: []Workload{{"web", "w", 1, 1}}},
		},
		Rules: Rules[1:], Opaque: []string{hostile}, OnlyTo: []Workload{{"web", hostile, 2, 3}},
		Validation: &Validation{Envoy: "1.36.4", Whole: 4, Rejected: []Rejection{{Type: "LDS", Name: hostile, To: 2, Reason: hostile}}},
	}
	for name, r := range map[string]*Result{"full": full, "no difference": {From: Side{Name: "a"}, To: Side{Name: "b"}, Rules: Rules}} {
		t.Run(name, func(t *testing.T) {
			page := pageOf(t, r)
			script := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(page, -1)
			if len(script) != 1 {
				t.Fatalf("%d scripts, want 1", len(script))
			}
			sum := sha256.Sum256([]byte(script[0][1]))
			if digest := "script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"; !strings.Contains(html.UnescapeString(page), digest) {
				t.Errorf("the policy does not allow the script: want %s", digest)
			}
			for _, foreign := range []string{"<img", "javascript:", "src=\"", "%!"} {
				if strings.Contains(page, foreign) {
					t.Errorf("it holds %q", foreign)
				}
			}
			ids := map[string]bool{}
			for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
				if ids[m[1]] {
					t.Errorf("two elements are called %q", m[1])
				}
				ids[m[1]] = true
			}
			for i, g := range r.Groups {
				if !ids[fmt.Sprintf("difference-%d", i+1)] || !strings.Contains(page, html.EscapeString(g.Path)) {
					t.Errorf("difference %d is not shown", i+1)
				}
			}
			if n := strings.Count(page, "<article"); n != len(r.Groups) || ids["filter"] != (n > 0) {
				t.Errorf("%d differences, filter %v, want %d", n, ids["filter"], len(r.Groups))
			}
			for _, want := range append(slices.Concat(r.warnings(), r.notes()), r.outcome()[1:]) {
				if !strings.Contains(html.UnescapeString(page), want) {
					t.Errorf("%q is not shown", want)
				}
			}
		})
	}
	page := html.UnescapeString(pageOf(t, full))
	for _, want := range []string{
		`data-effect="in-place" data-type="RDS" data-namespaces="shop web"`, `<option>shop</option><option>web</option>`,
		`<div class="gone">- 1s</div>`, `<div class="come">+ b</div>`, `1 of 3 sidecars`, `>2 workloads<`, `value="removed" checked> removed (1)`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("it lacks %s", want)
		}
	}
}

func TestReview(t *testing.T) {
	word := func(n int) string { return fmt.Sprintf("%q", strings.Repeat("{x", n)) }
	for _, test := range []struct {
		name  string
		group Group
		want  []string
	}{
		{"names of resources that are new", Group{Op: Added, Resources: []string{"a", "b", "c", "d", "e", "f", "g"}}, []string{"+ a", "+ b", "+ c", "+ d", "+ e", "2 more, see below"}},
		{"elements that are gone", Group{Op: Removed, Path: "list[*]", Resources: []string{"80"}, Elements: []string{"host"}}, []string{"list[*]", "- host"}},
		{"two values of a field", Group{Op: Changed, Path: "x", Values: []Value{{From: "1s", To: "2s"}, {To: "3s"}}}, []string{"x", "- 1s", "+ 2s", "or", "+ 3s"}},
		{
			"a long value that lost a part",
			Group{Op: Changed, Path: "x", Values: []Value{{From: "{a: " + word(20) + ", b: [" + word(30) + ", 2], c: {d: 1}}", To: "{a: " + word(20) + ", b: [" + word(30) + "], c: {d: 1}}"}}},
			[]string{
				"x", "  {", "    a: " + word(20) + ",",
				"-   b: [" + word(30) + ", 2],", "+   b: [" + word(30) + "],",
				"    c: {d: 1}", "  }",
			},
		},
		{
			"far from a difference",
			Group{Op: Changed, Values: []Value{{From: "{" + strings.Repeat("a: "+word(20)+", ", 9) + "b: 1}", To: "{" + strings.Repeat("a: "+word(20)+", ", 9) + "b: 2}"}}},
			[]string{
				"7 equal lines", "    a: " + word(20) + ",", "    a: " + word(20) + ",", "    a: " + word(20) + ",", "-   b: 1", "+   b: 2", "  }",
			},
		},
		{"brackets that do not fit", Group{Values: []Value{{From: "}]{[" + strings.Repeat("x", 200), To: `"{`}}}, []string{"- }]{[" + strings.Repeat("x", 200), `+ "{`}},
	} {
		var got []string
		for _, l := range test.group.review() {
			got = append(got, l.Text)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
	long := Value{To: "[" + strings.Repeat(word(50)+", ", 2*shownLines) + "1]"}
	if got := long.review(); len(got) != shownLines+1 || !strings.Contains(got[shownLines].Text, "more; -o json has all") {
		t.Errorf("%d lines of a long value, want %d", len(got), shownLines+1)
	}
}

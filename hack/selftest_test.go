package hack

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repositoryOf makes a repository in a temporary folder from the files of one text: each starts
// with a line "-- NAME --".
func repositoryOf(t *testing.T, archive string) *repository {
	t.Helper()
	r := &repository{root: t.TempDir(), fset: token.NewFileSet()}
	for part := range strings.SplitSeq(strings.TrimPrefix(archive, "-- "), "\n-- ") {
		name, text, ok := strings.Cut(part, " --\n")
		if !ok {
			t.Fatalf("no file in %q", part)
		}
		full := filepath.Join(r.root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r.files = append(r.files, name)
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		tree, err := parser.ParseFile(r.fset, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		r.code = append(r.code, &source{path: name, text: []byte(text), tree: tree, test: strings.HasSuffix(name, "_test.go"), generated: ast.IsGenerated(tree)})
	}
	return r
}

// TestRulesFindWhatTheyForbid shows each rule a violation, and what is close to one.
func TestRulesFindWhatTheyForbid(t *testing.T) {
	for _, tc := range []struct {
		name    string
		rule    func(*repository) []finding
		archive string
		want    []string // "where: what" or its beginning, in order
	}{
		{"up, sideways and homeless", importsPointDown, `-- internal/analyse/stats/a.go --
package stats
import _ "scaler.mesh/scaler/internal/analyse/report"
import _ "scaler.mesh/scaler/internal/topology"
-- pkg/record/a.go --
package record
import _ "scaler.mesh/scaler/pkg/scenario"
-- internal/controlplane/istio/a.go --
package istio
import _ "scaler.mesh/scaler/internal/controlplane"
import _ "scaler.mesh/scaler/internal/topology"
-- internal/analyse/stats/a_test.go --
package stats
import _ "scaler.mesh/scaler/internal/run"
-- internal/cli/a.go --
package cli
import _ "scaler.mesh/scaler/test/imagetest"
-- pkg/else/a.go --
package other
`, []string{"internal/analyse/stats/a.go:2: internal/analyse/stats imports internal/analyse/report, which is above it", "internal/analyse/stats/a.go:3: internal/analyse/stats imports internal/topology, which is on the same floor", "internal/cli/a.go:2: internal/cli imports test/imagetest, which is above it", "pkg/else: "}},
		{"a control plane's name", driversAloneHaveNames, `-- internal/run/a.go --
package rollout
import "scaler.mesh/scaler/internal/controlplane/istio"
import "scaler.mesh/scaler/internal/analyse/stats"
var a = map[string]int{"istiod": 1, "istiod ": 2}
func f(s string) bool {
	switch s {
	case istio.Name:
	case stats.Name:
	}
	return istio.Name != s
}
-- internal/controlplane/istio/a.go --
package istio
const Name = "istiod"
-- internal/run/a_test.go --
package rollout
const name = "istiod"
`, []string{"internal/run/a.go:4: ", "internal/run/a.go:7: compares", "internal/run/a.go:10: compares"}},
		{"processes", processesStayBelow, `-- internal/run/a.go --
package rollout
import "scaler.mesh/scaler/internal/process"
func f(g *process.Group, p *process.Process) int {
	return p.PID()
}
-- internal/fleet/a.go --
package fleet
import "scaler.mesh/scaler/internal/process"
func f(p *process.Process) int { return p.PID() }
-- internal/controlplane/a.go --
package controlplane
import "scaler.mesh/scaler/internal/process"
func f(p *process.Process) int { return p.PID() }
`, []string{"internal/run/a.go:3: uses process.Process", "internal/run/a.go:4: asks"}},
		{"vendors", vendorTypesStayHome, `-- internal/analyse/report/a.go --
package report
import _ "scaler.mesh/scaler/kwok"
import _ "istio.io/api/x"
-- kwok/a.go --
package kwok
import _ "k8s.io/api/core/v1"
-- internal/controlplane/istio/a.go --
package istio
import _ "istio.io/api/x"
-- internal/analyse/stats/a_test.go --
package stats
import _ "github.com/spf13/cobra"
`, []string{"internal/analyse/report/a.go:3: istio.io/api/x is imported outside internal/controlplane", "internal/analyse/report: imports istio.io/api/x", "internal/analyse/report: imports kwok -> k8s.io/api/core/v1"}},
		{"package docs", packageDocs, `-- pkg/a/a.go --
package a
-- pkg/b/a.go --
package b
-- pkg/b/b.go --
// Package b is documented.
package b
`, []string{"pkg/a: no package comment"}},
		{"exported docs", exportedDocs, `-- pkg/a/a.go --
package a
func F() {}
type T[K any] struct{}
func (t *T[K]) M() {}
type hidden struct{}
func (hidden) Read() {}
const C = 1
// All of these.
const ( D = 1; E = 2 )
type (
	U int // counts
	V int
)
// RunOptions are options.
type RunOptions struct {
	N int // 0 = none
	M int
}
`, []string{"pkg/a/a.go:2: F has", "pkg/a/a.go:3: T has", "pkg/a/a.go:4: M has", "pkg/a/a.go:7: C has", "pkg/a/a.go:12: V has", "pkg/a/a.go:17: RunOptions.M"}},
		{"types of internal packages", publicTypes, `-- pkg/a/a.go --
package a
import "scaler.mesh/scaler/internal/b"
import other "scaler.mesh/scaler/internal/c"
func F(one []b.T) (two, three func(x *other.T)) { var four b.T }
func (t T) M(b.T) {}
func (hidden) M(b.T) {}
func f(b.T) {}
type T struct {
	A b.T
	a b.T
	b.T
}
type I interface {
	M(b.T)
	m(b.T)
}
type hidden struct { A b.T }
var V b.T
var W = b.V
-- internal/d/a.go --
package d
import "scaler.mesh/scaler/internal/b"
func F(b.T) {}
`, []string{"pkg/a/a.go:4: F has the type b.T", "pkg/a/a.go:4: F has the type other.T", "pkg/a/a.go:5: M has", "pkg/a/a.go:9: T has", "pkg/a/a.go:11: T has", "pkg/a/a.go:14: I has", "pkg/a/a.go:18: V has"}},
		{"names", packageNames, `-- pkg/a/a.go --
package util
-- pkg/b/a.go --
package utility
`, []string{"pkg/a: package util"}},
		{"frameworks", oneFramework, `-- a/suite_test.go --
package a
import . "github.com/onsi/ginkgo/v2"
func TestMain(m *testing.M) {}
func TestA(t *testing.T) { RunSpecs(t, "a") }
func TestInABubble(t *testing.T) { synctest.Test(t, nil) }
func FuzzA(f *testing.F) {}
-- a/more_test.go --
package a
func TestPlain(t *testing.T) { t.Fatal() }
-- b/b_test.go --
package b
func TestPlain(t *testing.T) { t.Fatal() }
`, []string{"a/more_test.go:2: TestPlain is a plain test"}},
		{"private strings", privateStrings, "-- README.md --\nsee " + "/ho" + "me/alice/x and /usr/lib/cni, src/" + "home/x, https://x/" + "work/x\n/ro" + "ot/y\nGOPROXY=https://proxy." + "golang.org\n",
			[]string{`README.md:1: "/ho` + `me/alice"`, `README.md:2: "/ro` + `ot/y"`, `README.md:3: "proxy.` + `golang.org"`}},
		{"flags", errorsNameFields, `-- internal/a/a.go --
package a
import "errors"
var err = errors.New("--pods: got 0, want 1 or more")
-- internal/cli/b.go --
package cli
import "errors"
var err = errors.New("--pods: got 0, want 1 or more")
`, []string{"internal/a/a.go:3: an error names a flag"}},
		{"pairs", scriptPairs, `-- hack/update-a.sh --
#
-- hack/verify-b.sh --
#
-- hack/other.sh --
#
`, []string{"hack/update-a.sh: not exec", "hack/update-a.sh: its partner is missing: hack/verify-a.sh", "hack/verify-b.sh: not exec", "hack/verify-b.sh: its partner is missing: hack/update-b.sh", "hack/other.sh: not exec"}},
		{"links", documentLinks, "-- a.md --\n# One `two`, three\n[x](b/c.md#head) [x](#one-two-three) [x](b) [x](https://h/x) <a id=\"y\"></a> [x](#y)\n[x](gone.md) ![x](b/c.md#gone) `pkg/gone` `x/gone`\n-- b/c.md --\n# Head\n# Head\n[x](../a.md) [x](#head-1)\n",
			[]string{`a.md: link "gone.md": there is no gone.md`, `a.md: link "b/c.md#gone": b/c.md has no heading "gone"`, "a.md: `pkg/gone` does not exist"}},
		{"README", readmeNamesTests, "-- README.md --\nword\n", []string{"README.md: does not name hack/test.sh"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, f := range tc.rule(repositoryOf(t, tc.archive)) {
				got = append(got, fmt.Sprintf("%s: %s", f.where, f.what))
			}
			for i := range max(len(got), len(tc.want)) {
				if i >= len(got) || i >= len(tc.want) || !strings.HasPrefix(got[i], tc.want[i]) {
					t.Fatalf("found\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(tc.want, "\n\t"))
				}
			}
		})
	}
}

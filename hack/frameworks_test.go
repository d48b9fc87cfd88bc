package hack

import (
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
)

// oneFramework checks that a package whose tests use Ginkgo has no others. Two kinds of functions
// must be plain: those that run Ginkgo's specs, and those in a bubble of testing/synctest, which
// needs a *testing.T. Ginkgo has no benchmarks, fuzz tests and examples.
func oneFramework(r *repository) []finding {
	ginkgo := map[string]bool{}
	for _, s := range r.code {
		if strings.HasSuffix(s.path, "_test.go") && s.importName("github.com/onsi/ginkgo/v2") != "" {
			ginkgo[s.folder()] = true
		}
	}
	var found []finding
	for _, s := range r.code {
		if !ginkgo[s.folder()] || !strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		for _, d := range s.tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && isTest(f) && !calls(f, "RunSpecs", "ginkgo.RunSpecs", "synctest.Test") {
				found = append(found, r.at(f, f.Name.Name+" is a plain test, and "+path.Base(s.folder())+" uses Ginkgo"))
			}
		}
	}
	return found
}

// isTest reports whether go test runs a function as a test.
func isTest(f *ast.FuncDecl) bool {
	return f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain"
}

// calls reports whether a function calls one of these, as they are written there.
func calls(f *ast.FuncDecl, names ...string) (found bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			found = found || slices.Contains(names, types.ExprString(call.Fun))
		}
		return !found
	})
	return found
}

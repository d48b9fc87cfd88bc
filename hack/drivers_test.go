package hack

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"

	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/controlplane/external"
)

// driverNameAllowed are the packages that may hold a text which is also a
// control plane's name, with the reason.
var driverNameAllowed = map[string]string{
	"pkg/scenario":       "the default scenario names the control plane under test",
	"internal/component": "programs have names, too, and some are those of their control plane",
	"internal/capture":   "objects of a control plane are recognized by their labels",
}

// driverNameCommon are names that are words of their own as well, which texts may
// be; comparisons with their constants may not.
var driverNameCommon = map[string]string{
	external.Name: "is also a command, a flag and a part of the record",
}

// driversAloneHaveNames looks outside internal/controlplane for texts that are a
// control plane's name, and for comparisons with one's constant Name: what
// depends on which control plane it is belongs in its driver.
func driversAloneHaveNames(r *repository) []finding {
	var names []string
	for _, d := range drivers.All() {
		if driverNameCommon[d.Name] == "" {
			names = append(names, d.Name)
		}
	}
	var found []finding
	for _, s := range r.code {
		if s.test || s.generated || below(s.folder(), []string{"internal/controlplane"}) || driverNameAllowed[s.folder()] != "" {
			continue
		}
		adapters := map[string]bool{} // by the name that the file has for them
		for _, p := range s.imports() {
			if below(p, []string{module + "internal/controlplane"}) {
				adapters[s.importName(p)] = true
			}
		}
		isName := func(e ast.Expr) bool {
			selector, ok := e.(*ast.SelectorExpr)
			if !ok {
				return false
			}
			of, ok := selector.X.(*ast.Ident)
			return ok && of.Obj == nil && adapters[of.Name] && selector.Sel.Name == "Name"
		}
		compared := func(n ast.Node, operands ...ast.Expr) {
			if slices.ContainsFunc(operands, isName) {
				found = append(found, r.at(n, "compares a control plane's name: make what differs a field of controlplane.Driver"))
			}
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && slices.Contains(names, text) {
					found = append(found, r.at(n, fmt.Sprintf("%q is a control plane's name: take it from its driver", text)))
				}
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					compared(n, n.X, n.Y)
				}
			case *ast.CaseClause:
				compared(n, n.List...)
			}
			return true
		})
	}
	return found
}

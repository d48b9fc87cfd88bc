package hack

import (
	"bytes"
	"fmt"
	"go/ast"
	"maps"
	"slices"
)

const (
	// maxPackageLines bounds the lines of one folder's Go files, without its tests and
	// what is generated.
	maxPackageLines = 6000
	// maxMethods bounds the methods of one type, without those of what it embeds.
	maxMethods = 25
)

func smallPackages(r *repository) []finding {
	lines := map[string]int{}
	for _, s := range r.code {
		if !s.test && !s.generated {
			lines[s.folder()] += bytes.Count(s.text, []byte("\n"))
		}
	}
	var found []finding
	for _, folder := range slices.Sorted(maps.Keys(lines)) {
		if n := lines[folder]; n > maxPackageLines {
			found = append(found, finding{folder, fmt.Sprintf("%d lines without tests, want %d at most: it is several packages", n, maxPackageLines)})
		}
	}
	return found
}

// methods counts the methods of each type, by folder and name, as in pkg/stats.Histogram.
func methods(r *repository) map[string]int {
	count := map[string]int{}
	for _, s := range r.code {
		if s.test || s.generated {
			continue
		}
		for _, d := range s.tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				count[s.folder()+"."+receiverName(f.Recv.List[0].Type)]++
			}
		}
	}
	return count
}

// receiverName is the name of a receiver's type, without a star or type parameters.
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func fewMethods(r *repository) []finding {
	count := methods(r)
	var found []finding
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if n := count[name]; n > maxMethods {
			found = append(found, finding{name, fmt.Sprintf("%d methods, want %d at most: it is several things", n, maxMethods)})
		}
	}
	return found
}

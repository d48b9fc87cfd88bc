package record

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// source holds the declarations of the package's files. Tests compare the documents with them.
type source struct {
	structs map[string]*ast.TypeSpec // by name
	docs    map[string]string        // comments of these
	kinds   map[string]string        // of the events among them
}

func parseSource(t *testing.T) source {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	s := source{map[string]*ast.TypeSpec{}, map[string]string{}, map[string]string{}}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			s.take(declared)
		}
	}
	return s
}

func (s source) take(declared ast.Decl) {
	if f, ok := declared.(*ast.FuncDecl); ok && f.Name.Name == "EventKind" {
		kind, _ := strconv.Unquote(f.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit).Value)
		s.kinds[f.Recv.List[0].Type.(*ast.Ident).Name] = kind
	}
	list, ok := declared.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range list.Specs {
		spec, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if _, ok := spec.Type.(*ast.StructType); ok {
			s.structs[spec.Name.Name] = spec
			s.docs[spec.Name.Name] = list.Doc.Text() + spec.Doc.Text()
		}
	}
}

// documented is a field as a document has it.
type documented struct{ name, kind, comment string }

// fields returns a struct's fields by their names in JSON, with Go's type and the comment.
func (s source) fields(name string) []documented {
	var all []documented
	for _, field := range s.structs[name].Type.(*ast.StructType).Fields.List {
		for _, ident := range field.Names {
			d := documented{ident.Name, typeText(field.Type), strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")}
			if field.Tag != nil {
				tag, _ := strconv.Unquote(field.Tag.Value)
				d.name, _, _ = strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			}
			all = append(all, d)
		}
	}
	return all
}

func typeText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + typeText(e.X)
	case *ast.ArrayType:
		return "[]" + typeText(e.Elt)
	case *ast.SelectorExpr:
		return typeText(e.X) + "." + e.Sel.Name
	case *ast.MapType:
		return "map[" + typeText(e.Key) + "]" + typeText(e.Value)
	}
	return "?"
}

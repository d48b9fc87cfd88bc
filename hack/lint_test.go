// Package hack contains the scripts that keep the repository in order, and the rules for
// code and documents that a machine can check, as one test. Each rule reports all its
// findings at once. Exceptions are listed with the rule, with their reason.
package hack

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the prefix of the import paths of our own packages.
const module = "scaler.mesh/scaler/"

// repository has the files that the rules check. Paths are relative to the root, with slashes.
type repository struct {
	root  string
	fset  *token.FileSet
	files []string // tracked, or new and not ignored
	code  []*source
}

// source is one Go file.
type source struct {
	path      string
	text      []byte
	tree      *ast.File
	test      bool // a test, or part of a folder of tests
	generated bool
}

func (s *source) folder() string { return path.Dir(s.path) }
func (s *source) imports() []string {
	var all []string
	for _, i := range s.tree.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil { // always: it was parsed
			all = append(all, p)
		}
	}
	return all
}

// importName returns the name by which a file knows a package; "" when it does not import it.
func (s *source) importName(importPath string) string {
	for _, i := range s.tree.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err != nil || p != importPath {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// finding is one violation.
type finding struct {
	where, what string
}

func (r *repository) at(node ast.Node, what string) finding {
	p := r.fset.Position(node.Pos())
	return finding{p.Filename + ":" + strconv.Itoa(p.Line), what}
}

func TestLint(t *testing.T) {
	r, err := load("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []struct {
		name  string
		check func(*repository) []finding
	}{
		{"imports point down", importsPointDown},
		{"vendor types stay home", vendorTypesStayHome},
		{"drivers alone have names", driversAloneHaveNames},
		{"processes stay below", processesStayBelow},
		{"a package's tests use one framework", oneFramework},
		{"packages are documented", packageDocs},
		{"exported names are documented", exportedDocs},
		{"public types are public", publicTypes},
		{"package names are the field's", packageNames},
		{"no paths of one machine, no registry hosts", privateStrings},
		{"errors of libraries name fields", errorsNameFields},
		{"generated files come in pairs", scriptPairs},
		{"links in documents resolve", documentLinks},
		{"the README names the tests", readmeNamesTests},
	} {
		t.Run(rule.name, func(t *testing.T) {
			found := rule.check(r)
			slices.SortStableFunc(found, func(a, b finding) int { return strings.Compare(a.where, b.where) })
			for _, f := range found {
				t.Errorf("%s: %s", f.where, f.what)
			}
		})
	}
}

// load reads the repository and parses its Go files.
func load(root string) (*repository, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	r := &repository{root: abs, fset: token.NewFileSet()}
	if r.files, err = listFiles(abs); err != nil {
		return nil, err
	}
	for _, name := range r.files {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(abs, name))
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(r.fset, name, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		r.code = append(r.code, &source{
			path:      name,
			text:      text,
			tree:      tree,
			test:      strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/"),
			generated: ast.IsGenerated(tree),
		})
	}
	return r, nil
}

// listFiles asks git; a source archive without it is simply walked.
func listFiles(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	var all []string
	if out, err := cmd.Output(); err == nil {
		for name := range bytes.SplitSeq(out, []byte{0}) {
			all = append(all, string(name))
		}
	} else {
		err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			if d.IsDir() && rel == ".git" {
				return filepath.SkipDir
			}
			all = append(all, filepath.ToSlash(rel))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	// Deleted but not yet committed files, links and folders are none of ours.
	return slices.DeleteFunc(all, func(name string) bool {
		info, err := os.Lstat(filepath.Join(root, name))
		return name == "" || err != nil || !info.Mode().IsRegular()
	}), nil
}

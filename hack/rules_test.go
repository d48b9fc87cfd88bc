package hack

import (
	"bytes"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func packageDocs(r *repository) []finding {
	documented := map[string]bool{}
	for _, s := range r.code {
		if strings.HasSuffix(s.tree.Name.Name, "_test") {
			continue // the tests' own package; the one that they test is to be documented
		}
		documented[s.folder()] = documented[s.folder()] || s.tree.Doc != nil
	}
	var found []finding
	for folder, ok := range documented {
		if !ok {
			found = append(found, finding{folder, "no package comment: say what the package is for and what it leaves to others"})
		}
	}
	return found
}

func exportedDocs(r *repository) []finding {
	var found []finding
	for _, s := range r.code {
		if s.test || s.generated {
			continue
		}
		for _, d := range s.tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && receiverExported(d) {
					found = append(found, r.at(d, d.Name.Name+" has no comment"))
				}
			case *ast.GenDecl:
				found = append(found, undocumented(r, d)...)
			}
		}
	}
	return found
}

// publicTypes finds exported signatures, fields and variables of pkg/ that have a type of internal/, which no
// other module can name.
func publicTypes(r *repository) []finding {
	var found []finding
	for _, s := range r.code {
		if s.test || !below(s.folder(), []string{"pkg"}) {
			continue
		}
		internal := map[string]string{}
		for _, p := range s.imports() {
			if below(p, []string{module + "internal"}) {
				internal[s.importName(p)] = p
			}
		}
		// look leaves out fields and methods that are not exported.
		var look func(name string, of ast.Node)
		fields := func(name string, list *ast.FieldList) {
			for _, f := range list.List {
				if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
					look(name, f.Type)
				}
			}
		}
		look = func(name string, of ast.Node) {
			ast.Inspect(of, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.StructType:
					fields(name, n.Fields)
					return false
				case *ast.InterfaceType:
					fields(name, n.Methods)
					return false
				case *ast.SelectorExpr:
					if id, ok := n.X.(*ast.Ident); ok && internal[id.Name] != "" {
						found = append(found, r.at(n, fmt.Sprintf("%s has the type %s.%s, which no other module can name", name, id.Name, n.Sel.Name)))
					}
				}
				return true
			})
		}
		for _, d := range s.tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && receiverExported(d) {
					look(d.Name.Name, d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							look(spec.Name.Name, spec.Type)
						}
					case *ast.ValueSpec:
						if spec.Type != nil && slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported) {
							look(spec.Names[0].Name, spec.Type)
						}
					}
				}
			}
		}
	}
	return found
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	exported := true
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = exported && id.IsExported()
		}
		_, generic := n.(*ast.IndexExpr)
		return !generic
	})
	return exported
}

// undocumented looks at a group of types, constants or variables. One comment may serve a group
// of constants or variables; a type has its own, and so has each field of an Options struct,
// which states the meaning of its zero value.
func undocumented(r *repository, d *ast.GenDecl) []finding {
	var found []finding
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			if d.Doc != nil || spec.Doc != nil || spec.Comment != nil {
				continue
			}
			for _, n := range spec.Names {
				if n.IsExported() {
					found = append(found, r.at(n, n.Name+" has no comment"))
				}
			}
		case *ast.TypeSpec:
			if !spec.Name.IsExported() {
				continue
			}
			if spec.Doc == nil && spec.Comment == nil && (d.Doc == nil || d.Lparen.IsValid()) {
				found = append(found, r.at(spec, spec.Name.Name+" has no comment"))
			}
			if st, ok := spec.Type.(*ast.StructType); ok && strings.HasSuffix(spec.Name.Name, "Options") {
				for _, f := range st.Fields.List {
					if len(f.Names) > 0 && f.Names[0].IsExported() && f.Doc == nil && f.Comment == nil {
						found = append(found, r.at(f, fmt.Sprintf("%s.%s has no comment: what does its zero value mean?", spec.Name.Name, f.Names[0].Name)))
					}
				}
			}
		}
	}
	return found
}

func packageNames(r *repository) []finding {
	bad := []string{"util", "utils", "common", "types", "model", "models", "helper", "helpers", "misc", "base", "shared"}
	folders := map[string]bool{}
	var found []finding
	for _, s := range r.code {
		name := strings.TrimSuffix(s.tree.Name.Name, "_test")
		if slices.Contains(bad, name) && !folders[s.folder()] {
			folders[s.folder()] = true
			found = append(found, finding{s.folder(), fmt.Sprintf("package %s: name what it is about", name)})
		}
	}
	return found
}

// machinePath is an absolute path that exists on one machine only.
var machinePath = regexp.MustCompile(`(?:^|[^\w./~$*}-])/(?:root|home|work|Users)/[\w.]+`)

// registryHosts are the hosts of package registries, which belong into each machine's settings.
// They are written in pieces, or this file would be found.
var registryHosts = []string{
	"proxy.golang" + ".org", "sum.golang" + ".org", "goproxy" + ".io", "goproxy" + ".cn",
	"pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "npmjs" + ".com", "crates" + ".io",
	"rubygems" + ".org", "deb.debian" + ".org", "archive.ubuntu" + ".com", "conda.anaconda" + ".org",
}

// privateAllowed are the exceptions: texts that stand in a file for a reason.
var privateAllowed = map[string][]string{}

func privateStrings(r *repository) []finding {
	var found []finding
	for _, name := range r.files {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			found = append(found, finding{name, err.Error()})
			continue
		}
		if bytes.IndexByte(text, 0) >= 0 {
			continue
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			for _, what := range private(line, r.root) {
				if !slices.Contains(privateAllowed[name], what) {
					found = append(found, finding{fmt.Sprintf("%s:%d", name, number), fmt.Sprintf("%q has no place in the repository", what)})
				}
			}
		}
	}
	return found
}

// namingFlags are the packages whose errors still name flags.
var namingFlags = []string{"internal/cli", "internal/series", "hack"}

// flagError is the text of an error that begins with a flag.
var flagError = regexp.MustCompile("^[\"`]--[a-z%-]+: ")

// errorsNameFields finds errors of libraries that know the command line: they name the field, and the
// command line adds the flag.
func errorsNameFields(r *repository) []finding {
	var found []finding
	for _, s := range r.code {
		if s.test || below(s.folder(), namingFlags) {
			continue
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && flagError.MatchString(text.Value) {
				found = append(found, r.at(n, "an error names a flag: name the field (scenario.Refuse)"))
			}
			return true
		})
	}
	return found
}

func private(line, root string) []string {
	var all []string
	for _, m := range machinePath.FindAllString(line, -1) {
		all = append(all, m[strings.Index(m, "/"):])
	}
	for _, host := range append(registryHosts, root+"/") {
		if strings.Contains(line, host) {
			all = append(all, host)
		}
	}
	return all
}

// scriptPairs wants for each update script in hack its verify script, and the reverse, both
// executable.
func scriptPairs(r *repository) []finding {
	var found []finding
	for _, name := range r.files {
		base := path.Base(name)
		if path.Dir(name) != "hack" || !strings.HasSuffix(base, ".sh") {
			continue
		}
		if info, err := os.Stat(filepath.Join(r.root, name)); err == nil && info.Mode().Perm()&0o111 == 0 {
			found = append(found, finding{name, "not executable"})
		}
		partner := ""
		if rest, ok := strings.CutPrefix(base, "update-"); ok {
			partner = "hack/verify-" + rest
		} else if rest, ok := strings.CutPrefix(base, "verify-"); ok {
			partner = "hack/update-" + rest
		}
		if partner != "" && !slices.Contains(r.files, partner) {
			found = append(found, finding{name, "its partner is missing: " + partner})
		}
	}
	return found
}

package hack

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// document has the references of a Markdown file, and the targets in it that others can refer to.
type document struct {
	links   []string        // destinations of links and images
	anchors map[string]bool // ids of headings, as GitHub makes them, and of HTML elements
	paths   []string        // code spans that look like a path of this repository
}

// htmlReference finds references and ids in HTML within Markdown.
var htmlReference = regexp.MustCompile(`\b(src|href|id)="([^"]*)"`)

// repositoryPath is a code span that names a folder or file of this repository.
var repositoryPath = regexp.MustCompile(`^(cmd|dashboards|docs|hack|internal|kwok|pkg|test)/[\w./-]+$`)

// readDocument parses a Markdown file.
func readDocument(markdown []byte) document {
	d := document{anchors: map[string]bool{}}
	headings := map[string]int{}
	html := func(segments *text.Segments) {
		for _, m := range htmlReference.FindAllSubmatch(segments.Value(markdown), -1) {
			if string(m[1]) == "id" {
				d.anchors[string(m[2])] = true
			} else {
				d.links = append(d.links, string(m[2]))
			}
		}
	}
	tree := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(markdown))
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			slug := headingSlug(plainText(n, markdown))
			if count := headings[slug]; count > 0 {
				d.anchors[fmt.Sprintf("%s-%d", slug, count)] = true
			} else {
				d.anchors[slug] = true
			}
			headings[slug]++
		case *ast.Link:
			d.links = append(d.links, string(n.Destination))
		case *ast.Image:
			d.links = append(d.links, string(n.Destination))
		case *ast.RawHTML:
			html(n.Segments)
		case *ast.HTMLBlock:
			html(n.Lines())
		case *ast.CodeSpan:
			if span := plainText(n, markdown); repositoryPath.MatchString(span) {
				d.paths = append(d.paths, span)
			}
		}
		return ast.WalkContinue, nil
	})
	return d
}

// plainText returns the text of a node without its markup.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// headingSlug returns the id that GitHub gives a heading.
func headingSlug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}

// documentLinks checks that relative links of documents lead to a file or folder of the
// repository, and their fragments to a heading. Links to other sites are not followed. Paths in
// code spans must exist too, except in the changelog, which describes the past.
func documentLinks(r *repository) []finding {
	var found []finding
	documents := map[string]document{}
	for _, name := range r.files {
		if path.Ext(name) != ".md" || strings.Contains(name, "testdata/") {
			continue
		}
		markdown, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			found = append(found, finding{name, err.Error()})
			continue
		}
		documents[name] = readDocument(markdown)
	}
	exists := func(name string) bool {
		return slices.ContainsFunc(r.files, func(file string) bool {
			return file == name || name == "." || strings.HasPrefix(file, name+"/")
		})
	}
	for name, d := range documents {
		for _, link := range d.links {
			u, err := url.Parse(link)
			if err != nil {
				found = append(found, finding{name, fmt.Sprintf("link %q: %v", link, err)})
				continue
			}
			if u.Scheme != "" || u.Host != "" {
				continue
			}
			target := name
			if u.Path != "" {
				target = path.Join(path.Dir(name), u.Path)
			}
			other, isDocument := documents[target]
			switch {
			case !exists(target):
				found = append(found, finding{name, fmt.Sprintf("link %q: there is no %s", link, target)})
			case u.Fragment != "" && isDocument && !other.anchors[u.Fragment]:
				found = append(found, finding{name, fmt.Sprintf("link %q: %s has no heading %q", link, target, u.Fragment)})
			}
		}
		if name == "CHANGELOG.md" {
			continue
		}
		for _, p := range d.paths {
			if !exists(strings.TrimSuffix(p, "/")) {
				found = append(found, finding{name, fmt.Sprintf("`%s` does not exist", p)})
			}
		}
	}
	return found
}

// testCommand runs all tests; .ci/run calls it.
const testCommand = "hack/test.sh"

// readmeNamesTests checks that the README names the command of the tests.
func readmeNamesTests(r *repository) []finding {
	markdown, err := os.ReadFile(filepath.Join(r.root, "README.md"))
	switch {
	case err != nil:
		return []finding{{"README.md", err.Error()}}
	case !bytes.Contains(markdown, []byte(testCommand)):
		return []finding{{"README.md", "does not name " + testCommand + ", which runs all tests"}}
	}
	return nil
}

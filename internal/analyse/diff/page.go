package diff

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
)

//go:embed page.tmpl
var pageSource string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

var pageMarkup = template.Must(template.New("page").Parse(pageSource))

// page is a result before it is markup.
type page struct {
	Title, Answer string
	Proxies       string // what was compared
	Sidecars      int
	Effects       []EffectCount
	Warnings      []string
	Validation    *validationPart
	Types         []typeCount
	Namespaces    []string
	Differences   []pageDifference
	Sides         []pageSide
	Notes         []string
	Rules         []Rule
	Never         string // compared
	Style         template.CSS
	Script        template.JS
	Digest        string // of the script, which the page's policy allows alone
}

type validationPart struct {
	Answer   string
	Rejected []Rejection
}

// typeCount is the number of groups of differences of one type of resource.
type typeCount struct {
	Name   string
	Groups int
}

type pageSide struct {
	Name                string
	Sidecars, Resources int
	Held                string
}

// pageDifference is a group as a page shows it.
type pageDifference struct {
	Number        int
	Effect        Effect
	Type          string
	Namespaces    string // of its workloads, separated by spaces
	Subject, Size string
	Sidecars      int
	Lines         []line
	Meaning       *Meaning
	Lists         []nameList
}

// nameList is shown when a reader opens it.
type nameList struct {
	Title string
	Names []string
}

// HTML writes a result as one page that needs no other file and no network. All of it is in the markup; a script
// searches and filters.
func HTML(w io.Writer, r *Result) error {
	sum := sha256.Sum256([]byte(pageScript))
	p := page{
		Title: output.Plain(r.sides()), Answer: strings.ToUpper(r.outcome()[:1]) + r.outcome()[1:], Proxies: r.Proxies(), Sidecars: r.Sidecars, Effects: r.Effects, Warnings: printable(r.warnings()), Notes: printable(r.notes()), Rules: r.Rules, Never: NeverCompared,
		Style: template.CSS(output.PageStyle + pageStyle), Script: template.JS(pageScript), Digest: "sha256-" + base64.StdEncoding.EncodeToString(sum[:]),
	}
	for _, side := range []Side{r.From, r.To} {
		p.Sides = append(p.Sides, pageSide{output.Plain(side.Name), side.Sidecars, side.Resources, output.Bytes(float64(side.Bytes))})
	}
	if v := r.Validation; v != nil {
		p.Validation = &validationPart{Answer: output.Plain(v.answer())}
		for _, one := range v.Rejected {
			one.Name, one.Reason = output.Plain(one.Name), output.Plain(one.Reason)
			p.Validation.Rejected = append(p.Validation.Rejected, one)
		}
	}
	types, namespaces := map[string]int{}, map[string]bool{}
	for i, g := range r.Groups {
		types[g.Type]++
		for _, of := range g.Workloads {
			namespaces[of.Namespace] = true
		}
		p.Differences = append(p.Differences, g.onPage(i+1, r.Proxies()))
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		p.Types = append(p.Types, typeCount{name, types[name]})
	}
	p.Namespaces = sorted(namespaces)
	if err := pageMarkup.Execute(w, p); err != nil {
		return fmt.Errorf("writing the differences as HTML: %w", err)
	}
	return nil
}

func (g Group) onPage(number int, proxies string) pageDifference {
	d := pageDifference{
		Number: number, Effect: g.Effect, Type: g.Type, Subject: output.Plain(g.subject()), Size: g.size(proxies), Sidecars: g.Sidecars, Lines: g.review(), Meaning: g.Meaning,
	}
	var namespaces, workloads []string
	for _, w := range g.Workloads {
		if !slices.Contains(namespaces, w.Namespace) {
			namespaces = append(namespaces, w.Namespace)
		}
		workloads = append(workloads, fmt.Sprintf("%s/%s: %d of %d", w.Namespace, w.Name, w.Sidecars, w.Of))
	}
	d.Namespaces = strings.Join(namespaces, " ")
	list := func(noun string, names []string) {
		if len(names) > 0 {
			d.Lists = append(d.Lists, nameList{output.Many(len(names), noun), printable(names)})
		}
	}
	list("workload", workloads)
	list("resource", g.Resources)
	list("element", g.Elements)
	return d
}

func printable(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = output.Plain(text)
	}
	return all
}

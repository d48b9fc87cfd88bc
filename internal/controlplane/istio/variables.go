package istio

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"

	"scaler.mesh/scaler/internal/component"
)

// variables lists the variables that istiod reads, with their defaults. istiod writes the page about itself that is published as
// istio.io/latest/docs/reference/commands/pilot-discovery, with all variables that its packages register (pkg/env and
// pkg/collateral of istio.io/istio). Those that it reads otherwise are not there, as the ones of Go's runtime.
func variables(ctx context.Context, programs map[string]string) (found map[string]string, err error) {
	dir, err := os.MkdirTemp("", "scaler-istiod-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := programs[component.Istiod]
	if _, err := component.Ask(ctx, program, "collateral", "--html_fragment_with_front_matter", "--outputDir", dir); err != nil {
		return nil, err
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.html"))
	if err != nil {
		return nil, err
	}
	if len(pages) != 1 {
		return nil, fmt.Errorf("asking %s for its variables: got %d pages, want 1", program, len(pages))
	}
	page, err := os.ReadFile(pages[0])
	if err != nil {
		return nil, err
	}
	if found = variablesOf(string(page)); len(found) == 0 {
		return nil, fmt.Errorf("asking %s for its variables: it lists none", program)
	}
	return found, nil
}

// variableRow matches a row of the table of variables: name, type and default. Other tables have other columns.
var variableRow = regexp.MustCompile(`<td><a href='#[^']*'><code>([^<]+)</code></a></td>\s*<td>[^<]*</td>\s*<td><code>([^<]*)</code></td>`)

// variablesOf reads the variables and their defaults from the page of a program.
func variablesOf(page string) map[string]string {
	found := map[string]string{}
	for _, row := range variableRow.FindAllStringSubmatch(page, -1) {
		found[html.UnescapeString(row[1])] = html.UnescapeString(row[2])
	}
	return found
}

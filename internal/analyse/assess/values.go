package assess

import (
	"fmt"
	"path/filepath"
	"strings"

	"scaler.mesh/scaler/internal/output"
)

// ValuesFile is the name of the file with what to set.
const ValuesFile = "values.yaml"

func valuesPath(dir string) string { return filepath.Join(dir, ValuesFile) }

// Values returns the settings as a values file of the istiod chart, with the reason of each line.
func (a *Assessment) Values() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Values of the chart istiod %s for this mesh: %s\n# Verdict: %s\n", output.Plain(a.To), output.Plain(a.Mesh), a.Verdict)
	if len(a.Settings) == 0 {
		b.WriteString("# Nothing has to be set that a figure supports.\n{}\n")
		return b.String()
	}
	b.WriteString("# For Helm; with istioctl they are below spec.values.pilot of an IstioOperator.\n")
	var open []string // parts of the path that are written
	for _, s := range a.Settings {
		parts := strings.Split(s.Path, ".")
		for i, part := range parts {
			if i < len(open) && open[i] == part {
				continue
			}
			open = append(open[:min(i, len(open))], part)
			indent := strings.Repeat("  ", i)
			if i < len(parts)-1 {
				fmt.Fprintf(&b, "%s%s:\n", indent, part)
				continue
			}
			fmt.Fprintf(&b, "%s# %s\n%s%s: %s\n", indent, output.Plain(s.Why), indent, part, s.Value)
		}
	}
	return b.String()
}

package report

import (
	"path/filepath"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// withUniqueNames renames runs that share a name to their path below the folder that
// contains them all, as in "before/istiod-strict-200". Runs that were not read from
// folders keep their names.
func withUniqueNames(runs []record.Run) []record.Run {
	seen := map[string]int{}
	for i := range runs {
		seen[runs[i].Name]++
	}
	renamed := append([]record.Run{}, runs...)
	parent := commonParent(runs)
	for i := range renamed {
		r := &renamed[i]
		if seen[r.Name] < 2 || r.Dir == "" {
			continue
		}
		if below, err := filepath.Rel(parent, r.Dir); err == nil {
			r.Name = filepath.ToSlash(below)
		}
	}
	return renamed
}

// commonParent returns the deepest folder that contains all runs' folders.
func commonParent(runs []record.Run) string {
	parent := ""
	for i := range runs {
		dir := filepath.Dir(runs[i].Dir)
		switch {
		case runs[i].Dir == "":
			continue
		case parent == "":
			parent = dir
		}
		for parent != dir && !strings.HasPrefix(dir, strings.TrimSuffix(parent, "/")+"/") && parent != filepath.Dir(parent) {
			parent = filepath.Dir(parent)
		}
	}
	return parent
}

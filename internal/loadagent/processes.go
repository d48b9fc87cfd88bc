package loadagent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/process"
)

// find finds a process of the pod by the name of its program, which the kernel truncates
// to 15 bytes. It sees processes of other containers if the pod shares its process
// namespace. If there are several it returns the oldest.
func find(name string) (measure.Source, error) {
	if name == Own {
		return measure.Self(), nil
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var names []string
	var found []procfs.ProcStat
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil {
			continue // it has ended
		}
		if names = append(names, stat.Comm); stat.Comm == name && stat.State != "Z" {
			found = append(found, stat)
		}
	}
	if len(found) == 0 {
		slices.Sort(names)
		return nil, fmt.Errorf("the pod has no process %s: it has %s", name, strings.Join(slices.Compact(names), ", "))
	}
	oldest := slices.MinFunc(found, func(a, b procfs.ProcStat) int { return int(int64(a.Starttime) - int64(b.Starttime)) })
	return measure.OfProcess(process.Find(oldest.PID)), nil
}

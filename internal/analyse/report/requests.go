package report

import (
	"fmt"
	"slices"
	"strconv"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// requestsGrid returns the table of the requests and limits for the largest mesh of each setting, as `scaler plan` has them, and what
// explains it; nil where the runs are too few for a plan.
func requestsGrid(runs []record.Run) ([]grid, string) {
	g := grid{Name: "Requests and limits", Left: 1}
	for _, name := range []string{"pods", "mode", "CPU request", "memory request", "memory limit", "GOMAXPROCS", "replicas", "warnings of the plan"} {
		g.Head = append(g.Head, cell{Text: name})
	}
	groups := settings(runs)
	names := settingNames(groups)
	for i, of := range groups {
		var all []record.Run
		for _, r := range of.runs {
			all = append(all, *r)
		}
		if len(of.sizes()) < sizesNeeded {
			continue
		}
		plan, err := capacity.Make(all, capacity.Options{Pods: slices.Max(of.sizes()), Headroom: capacity.DefaultHeadroom})
		if err != nil || !plan.Request.Met {
			continue // scaler plan states why
		}
		r := plan.Request.Resources
		row := []string{
			strconv.Itoa(plan.Target.Pods), names[i], orAbsent(r.Requests.CPU), orAbsent(r.Requests.Memory), orAbsent(r.Limits.Memory),
			strconv.Itoa(plan.Request.Processors), strconv.Itoa(plan.Request.Replicas), strconv.Itoa(len(plan.Warnings)),
		}
		g.Rows = append(g.Rows, plainCells(row))
	}
	if len(g.Rows) == 0 {
		return nil, ""
	}
	return []grid{g}, fmt.Sprintf("Of each replica of the control plane, for the largest measured mesh: what its most demanding state needs by the upper end of the interval, and %.0f %% more. "+
		"scaler plan DIR --pods %s has how each follows from the runs, and its warnings.", 100*capacity.DefaultHeadroom, output.Plain(g.Rows[0][0].Text))
}

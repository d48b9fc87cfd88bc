package report

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// The table has a row for all containers together and one for each, with both sources.
func TestContainersTable(t *testing.T) {
	usage := func(cpu float64) record.ByPhase[*record.ContainerUsage] {
		return record.ByPhase[*record.ContainerUsage]{Rollout: &record.ContainerUsage{Usage: record.Usage{CPUSeconds: &cpu, MemoryBytes: &record.Level{Peak: new(2e8)}}}}
	}
	run := &record.Run{Containers: &record.Containers{
		ControlPlane: usage(3),
		Each: map[string]*record.Container{
			"istiod-b": {Usage: usage(2), Compared: &record.ContainerCompared{CPUSeconds: 4.5, OwnCPUSeconds: 4.25, MemoryBytes: 1.5e8, OwnMemoryBytes: 2.5e8}},
			"istiod-a": {Usage: usage(1)},
		},
	}}
	table := containers(&runReport{run: run})
	var rows []string
	for _, row := range table.Rows {
		var cells []string
		for _, cell := range row {
			cells = append(cells, cell.text)
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	want := []string{
		"all|3.00s|-|200MB|-|-|-|-|-|-",
		"istiod-a|1.00s|-|200MB|-|-|-|-|-|-",
		"istiod-b|2.00s|-|200MB|-|-|4.50s|4.25s|150MB|250MB",
	}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	if empty := containers(&runReport{run: &record.Run{}}); len(empty.Rows) > 0 {
		t.Errorf("a run without containers has %d rows", len(empty.Rows))
	}
}

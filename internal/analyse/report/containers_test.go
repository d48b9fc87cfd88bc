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
	table := (&runReport{run: run}).containers()
	rows := printedRows(table)
	want := []string{
		"all|3.00s|-|200MB|-|-|-|-|-|-",
		"istiod-a|1.00s|-|200MB|-|-|-|-|-|-",
		"istiod-b|2.00s|-|200MB|-|-|4.50s|4.25s|150MB|250MB",
	}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	if empty := (&runReport{run: &record.Run{}}).containers(); len(empty.Rows) > 0 {
		t.Errorf("a run without containers has %d rows", len(empty.Rows))
	}
}

// The table has both kinds of metrics, and limits where processor time is not known.
func TestClusterPrometheusTable(t *testing.T) {
	source := &record.PrometheusSource{
		IntervalSeconds: 15,
		ControlPlane:    record.ByPhase[*record.PrometheusUsage]{Rollout: &record.PrometheusUsage{CPUSecondsLow: new(0.5), CPUSecondsHigh: new(2.5)}},
		Each: map[string]*record.PrometheusPod{"istiod-a": {
			Usage:    record.ByPhase[*record.PrometheusUsage]{Rollout: &record.PrometheusUsage{Usage: record.Usage{CPUSeconds: new(1.5)}}},
			Compared: &record.PrometheusCompared{CPUSeconds: 4.5, OwnCPUSecondsLow: 4.25, OwnCPUSecondsHigh: 4.75, MemoryBytes: new(1.5e8), OwnMemoryBytesLow: new(1.4e8), OwnMemoryBytesHigh: new(1.6e8)},
		}},
	}
	table := (&runReport{run: &record.Run{ClusterPrometheus: &record.ClusterPrometheus{OwnMetrics: source, Cadvisor: &record.PrometheusSource{IntervalSeconds: 30}}}}).clusterPrometheus()
	rows := printedRows(table)
	want := []string{
		"all|ownMetrics, 15.0s|500ms to 2.50s|-|-|-|-|-|-|-|-",
		"istiod-a|ownMetrics, 15.0s|1.50s|-|-|-|-|4.50s|4.25s to 4.75s|150MB|140MB to 160MB",
		"all|cadvisor, 30.0s|-|-|-|-|-|-|-|-|-",
	}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	if empty := (&runReport{run: &record.Run{}}).clusterPrometheus(); len(empty.Rows) > 0 {
		t.Errorf("a run without a Prometheus has %d rows", len(empty.Rows))
	}
}

// printedRows is each row of a table as it is printed, with a bar between two cells.
func printedRows(t table) (rows []string) {
	for _, row := range t.printed().Rows {
		rows = append(rows, strings.Join(row, "|"))
	}
	return rows
}

package measure

import (
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// SampleInterval is the interval at which processes are read and targets scraped.
const SampleInterval = time.Second

// ClusterInterval is the interval at which the cluster's own programs are scraped, unless that of a recorder is longer. Their
// processor time and memory are read each SampleInterval. A scrape of the API server takes 35 ms of its processor time, and about
// as much of Prometheus's. The rates of the dashboards are over four SampleIntervals: where time is not slowed down, they have a gap
// after a scrape of these programs that was missed.
const ClusterInterval = 2 * SampleInterval

// InstrumentName names scaler itself as a component and a scrape job. Others are
// named after their processes.
const InstrumentName = "scaler"

// UsageOf returns a component's usage as the record has it.
func UsageOf(u Usage) *record.Usage {
	usage := &record.Usage{
		Cores:       &record.Level{Mean: &u.CoresMean, Peak: &u.CoresPeak, Peak100ms: u.CoresPeakBrief},
		CPUSeconds:  &u.CPUSeconds,
		MemoryBytes: &record.Level{Mean: &u.MemoryMean, Peak: &u.MemoryPeak, End: &u.MemoryEnd},
		Saturation:  u.Saturation,
		Restarts:    &u.Restarts,

		WaitedSeconds: u.Waited,
	}
	if w := u.WorkingSet; w != nil {
		usage.WorkingSetBytes = &record.Level{Mean: &w.Mean, Peak: &w.Peak, End: &w.End}
	}
	if u.Heap != nil {
		usage.HeapBytes = &record.Level{Mean: &u.Heap.Mean, End: &u.Heap.End}
	}
	return usage
}

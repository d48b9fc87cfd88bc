package measure

import (
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// SampleInterval is the interval at which processes are read and targets scraped.
const SampleInterval = time.Second

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

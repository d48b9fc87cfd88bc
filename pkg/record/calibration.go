package record

import (
	"slices"
	"time"
)

// CalibrationKind is the kind of a Calibration.
const CalibrationKind = "Calibration"

// Calibration has the instrument's figures with a control plane that costs next to
// nothing: the reference control plane, without a cluster. It is valid for one
// machine and one version of scaler.
type Calibration struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Schema     int                `json:"schema"`
	Machine    Machine            `json:"machine"`
	Scaler     string             `json:"scaler"` // version
	Points     []CalibrationPoint `json:"points"` // by variant, then by sidecars
}

// Machine identifies the machine that a calibration is valid for.
type Machine struct {
	CPUModel string `json:"cpuModel"`
	CPUs     int    `json:"cpus"`
	Kernel   string `json:"kernel"`
}

// CalibrationPoint is a calibration with one number of sidecars.
type CalibrationPoint struct {
	Made     time.Time `json:"made"`
	Seconds  float64   `json:"seconds"` // that it took
	XDS      string    `json:"xds"`     // delta or sotw
	Sidecars int       `json:"sidecars"`
	Services int       `json:"services"` // each sidecar is configured for all
	Changes  int       `json:"changes"`  // of each kind, one at a time, each to all sidecars

	// Faults that the control plane was configured to make; absent when there were
	// none. A point with faults is no floor.
	DelaySeconds float64 `json:"delaySeconds,omitempty"`
	Drop         float64 `json:"drop,omitempty"`    // share of pushes
	Dropped      *int64  `json:"dropped,omitempty"` // pushes that the control plane counts as dropped

	// Latencies: push and propagation count from before the request for the change
	// is sent, certificate as in a run, with requests at intervals of 10 ms.
	Latencies Latencies `json:"latencies"`
	// FanOut is the processor time of a change to all, per sidecar.
	FanOut FanOut `json:"fanOut"`
	// ConfigurationBytes is the mean size of what a sidecar holds.
	ConfigurationBytes float64 `json:"configurationBytes"`
	// Instrument: cores and lag while the sidecars are held and nothing
	// happens; memory and open files over the whole.
	Instrument Instrument `json:"instrument"`
	// ArrivalSeconds is the time from the first sidecar's start until the last one
	// is complete and certified.
	ArrivalSeconds float64 `json:"arrivalSeconds"`
}

// FanOut states where the time of a change to all sidecars goes. Seconds are of
// processor time, for each sidecar and change, until it was acknowledged.
type FanOut struct {
	InstrumentSeconds   float64 `json:"instrumentSeconds"`
	ControlPlaneSeconds float64 `json:"controlPlaneSeconds"`
	// Share is the part of the time from change to last sidecar in which all
	// processors were busy with both: 1 means that processors alone make it
	// that long.
	Share float64 `json:"share"`
}

// Floor returns what the figures of a run with this number of sidecars would read with a
// control plane that costs nothing, by their paths in Run. Values are interpolated
// linearly between the points of the variant; outside of them the nearest point is
// used. It returns nil if the variant has no point.
func (c *Calibration) Floor(xds string, sidecars int) map[string]float64 {
	var points []CalibrationPoint
	for _, p := range c.Points {
		if p.XDS == xds && !p.faulty() {
			points = append(points, p)
		}
	}
	if len(points) == 0 {
		return nil
	}
	slices.SortFunc(points, func(a, b CalibrationPoint) int { return a.Sidecars - b.Sidecars })
	i, _ := slices.BinarySearchFunc(points, sidecars, func(p CalibrationPoint, n int) int { return p.Sidecars - n })
	if i == len(points) {
		return points[i-1].figures()
	}
	if i == 0 || points[i].Sidecars == sidecars {
		return points[i].figures()
	}
	below, above := points[i-1], points[i]
	part := float64(sidecars-below.Sidecars) / float64(above.Sidecars-below.Sidecars)
	floor, upper := below.figures(), above.figures()
	for path, low := range floor {
		high, ok := upper[path]
		if !ok {
			delete(floor, path)
			continue
		}
		floor[path] = low + part*(high-low)
	}
	return floor
}

func (p *CalibrationPoint) faulty() bool { return p.DelaySeconds > 0 || p.Drop > 0 }

// figures returns the figures of a point by their paths in Run.
func (p *CalibrationPoint) figures() map[string]float64 {
	figures := map[string]float64{}
	set := func(path string, v *float64) {
		if v != nil {
			figures[path] = *v
		}
	}
	latency := func(path string, l *Latency) {
		if l != nil {
			set(path+".p50", l.P50)
			set(path+".p99", l.P99)
		}
	}
	latency("latencies.certificate", p.Latencies.Certificate)
	for kind, l := range p.Latencies.Push {
		latency("latencies.push."+string(kind), l)
	}
	for kind, l := range p.Latencies.Propagation {
		latency("latencies.propagation."+string(kind)+".first", l.First)
		latency("latencies.propagation."+string(kind)+".last", l.Last)
	}
	set("instrument.cores", p.Instrument.Cores)
	set("instrument.bytesPerSidecar", p.Instrument.BytesPerSidecar)
	return figures
}

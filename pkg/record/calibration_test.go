package record

import (
	"maps"
	"testing"
)

func TestFloor(t *testing.T) {
	point := func(sidecars int, last, bytes float64) CalibrationPoint {
		return CalibrationPoint{
			XDS: "delta", Sidecars: sidecars,
			Latencies:  Latencies{Propagation: map[ChangeKind]Propagation{EndpointAdd: {Last: &Latency{P50: new(last)}}}},
			Instrument: Instrument{BytesPerSidecar: new(bytes)},
		}
	}
	faulty := point(500, 9, 9)
	faulty.DelaySeconds = 1
	c := Calibration{Points: []CalibrationPoint{point(1000, 0.2, 90e3), point(100, 0.02, 100e3), faulty}}
	const last, bytes = "latencies.propagation.endpointAdd.last.p50", "instrument.bytesPerSidecar"
	for _, want := range []struct {
		sidecars    int
		last, bytes float64
	}{
		{1, 0.02, 100e3}, {100, 0.02, 100e3}, {550, 0.11, 95e3}, {1000, 0.2, 90e3}, {5000, 0.2, 90e3},
	} {
		floor := c.Floor("delta", want.sidecars)
		if !maps.EqualFunc(floor, map[string]float64{last: want.last, bytes: want.bytes}, func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }) {
			t.Errorf("floor at %d sidecars is %v, want %+v", want.sidecars, floor, want)
		}
	}
	if floor := c.Floor("sotw", 100); floor != nil {
		t.Errorf("floor of a variant without points is %v, want none", floor)
	}
}

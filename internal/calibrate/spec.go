package calibrate

import (
	"slices"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Spec holds the options of `scaler calibrate`. The zero value of a field is not its
// default: DefaultSpec has those.
type Spec struct {
	Sidecars []int  // a point for each
	Services int    // of the mesh, if there are as many sidecars
	XDS      string // "delta" or "sotw"
	Changes  int    // of each kind

	// Faults for the control plane to make: the measurement must show exactly these. A
	// calibration with faults is not kept.
	Delay time.Duration // delay of every push
	Drop  float64       // share of pushes that is not sent, 0 to 1

	Timeout time.Duration // after which a change that has not arrived is lost
	Hold    time.Duration // how long nothing is done, to measure what holding sidecars takes

	Programs component.Options // whose cache folder keeps calibrations
	State    string            // folder that holds what runs
}

// DefaultSpec returns the options of `scaler calibrate` without flags.
func DefaultSpec() Spec {
	return Spec{
		Sidecars: slices.Clone(defaultSizes), Services: 100, XDS: "delta", Changes: 10, Timeout: 10 * time.Second, Hold: 3 * time.Second,
	}
}

// defaultSizes are the numbers of sidecars for which floors are measured by default.
var defaultSizes = []int{100, 1000, 5000}

// endpointChanges are the kinds of change that a calibration follows.
var endpointChanges = []record.ChangeKind{record.EndpointAdd, record.EndpointRemove, record.EndpointHealth}

// Validate returns a *[scenario.Error] of the first field with an invalid value. Nothing is started or created before it returns nil.
func (s Spec) Validate() error {
	if len(s.Sidecars) == 0 {
		return scenario.Refuse("sidecars", "", "numbers, as in 100,1000")
	}
	const most = 20_000
	for _, n := range s.Sidecars {
		if n < 1 || n > most {
			return scenario.Refuse("sidecars", n, "1 to %d", most)
		}
		if 2*s.Changes > n { // removals and changes of health are each of another pod
			return scenario.Refuse("changes", s.Changes, "1 to %d, half of the sidecars", n/2)
		}
	}
	if s.Services < 1 || s.Services > 10_000 {
		return scenario.Refuse("services", s.Services, "1 to 10000")
	}
	if s.Changes < 1 {
		return scenario.Refuse("changes", s.Changes, "1 or more")
	}
	if err := scenario.CheckOneOf("xds", s.XDS, []string{"delta", "sotw"}); err != nil {
		return err
	}
	if s.Delay < 0 || s.Delay > time.Minute {
		return scenario.Refuse("delay", s.Delay, "0 to 1m")
	}
	if !(s.Drop >= 0 && s.Drop <= 1) {
		return scenario.Refuse("drop", s.Drop, "a share from 0 to 1")
	}
	if s.Hold < 100*time.Millisecond || s.Hold > time.Hour {
		return scenario.Refuse("hold", s.Hold, "100ms to 1h")
	}
	if s.Timeout < 100*time.Millisecond || s.Timeout > time.Hour {
		return scenario.Refuse("timeout", s.Timeout, "100ms to 1h")
	}
	return nil
}

// faulty reports whether the control plane is to make faults.
func (s Spec) faulty() bool { return s.Delay > 0 || s.Drop > 0 }

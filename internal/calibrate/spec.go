package calibrate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/pkg/record"
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

// Validate returns an error that names the first flag with an invalid value, the value,
// and what is wanted. Nothing is started or created before it returns nil.
func (s Spec) Validate() error {
	if len(s.Sidecars) == 0 {
		return errors.New(`parsing --sidecars "": want numbers, as in 100,1000`)
	}
	const most = 20_000
	for _, n := range s.Sidecars {
		if n < 1 || n > most {
			return fmt.Errorf("parsing --sidecars %d: want 1 to %d", n, most)
		}
		if 2*s.Changes > n { // removals and changes of health are each of another pod
			return fmt.Errorf("parsing --changes %d: want 1 to %d, half of --sidecars", s.Changes, n/2)
		}
	}
	if s.Services < 1 || s.Services > 10_000 {
		return fmt.Errorf("parsing --services %d: want 1 to 10000", s.Services)
	}
	if s.Changes < 1 {
		return fmt.Errorf("parsing --changes %d: want 1 or more", s.Changes)
	}
	if err := experiment.CheckOneOf("xds", s.XDS, []string{"delta", "sotw"}); err != nil {
		return err
	}
	if s.Delay < 0 || s.Delay > time.Minute {
		return fmt.Errorf("parsing --delay %s: want 0 to 1m", s.Delay)
	}
	if !(s.Drop >= 0 && s.Drop <= 1) {
		return fmt.Errorf("parsing --drop %g: want a share from 0 to 1", s.Drop)
	}
	if s.Hold < 100*time.Millisecond || s.Hold > time.Hour {
		return fmt.Errorf("parsing --hold %s: want 100ms to 1h", s.Hold)
	}
	if s.Timeout < 100*time.Millisecond || s.Timeout > time.Hour {
		return fmt.Errorf("parsing --timeout %s: want 100ms to 1h", s.Timeout)
	}
	return nil
}

// faulty reports whether the control plane is to make faults.
func (s Spec) faulty() bool { return s.Delay > 0 || s.Drop > 0 }

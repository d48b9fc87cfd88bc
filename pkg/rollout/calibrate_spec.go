package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/record"
)

// CalibrateSpec is what a user asks of `scaler calibrate`. The zero value of a
// field is not its default: DefaultCalibrateSpec has those.
type CalibrateSpec struct {
	Sidecars []int  // a point for each
	Services int    // of the mesh, if there are as many sidecars
	XDS      string // "delta" or "sotw"
	Changes  int    // of each kind

	// Faults for the control plane to make: what is measured must show just
	// these. A calibration with faults is not kept.
	Delay time.Duration // every push is held back so long
	Drop  float64       // share of pushes that is not sent, 0 to 1

	Timeout time.Duration // after which a change that has not arrived is lost
	Hold    time.Duration // how long nothing is done, to measure what holding sidecars takes

	Programs component.Options // whose cache folder keeps calibrations
	State    string            // folder that holds what runs
}

// DefaultCalibrateSpec is `scaler calibrate` without flags.
func DefaultCalibrateSpec() CalibrateSpec {
	return CalibrateSpec{
		Sidecars: slices.Clone(calibrated), Services: 100, XDS: "delta", Changes: 10, Timeout: 10 * time.Second, Hold: 3 * time.Second,
	}
}

// calibrated are the numbers of sidecars that floors are measured at.
var calibrated = []int{100, 1000, 5000}

// Validate names the first flag whose value cannot be used, the value, and what
// is wanted. Nothing has been started or created before it returns nil.
func (s CalibrateSpec) Validate() error {
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
	if err := oneOf("xds", s.XDS, []string{"delta", "sotw"}); err != nil {
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
func (s CalibrateSpec) faulty() bool { return s.Delay > 0 || s.Drop > 0 }

// thisMachine is the one that scaler runs on.
func thisMachine() record.Machine {
	return record.Machine{CPUModel: cpuModel(), CPUs: runtime.NumCPU(), Kernel: kernel()}
}

// cpuModel is what the kernel calls the first processor; "" where it does not
// say.
func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// calibrationFile is where this machine's calibration by this scaler is kept.
func calibrationFile(programs component.Options) (string, error) {
	dir := programs.CacheDir
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the user's cache folder: %w", err)
		}
		dir = filepath.Join(base, "scaler")
	}
	m := thisMachine()
	name := fmt.Sprintf("%s-%d-%s-%s", m.CPUModel, m.CPUs, m.Kernel, Version())
	name = regexp.MustCompile(`[^A-Za-z0-9.]+`).ReplaceAllString(name, "-")
	return filepath.Join(dir, "calibration", strings.Trim(name, "-")+".json"), nil
}

// readCalibration reads what is kept; without a file, and from one that this
// scaler cannot use, it is a calibration without points.
func readCalibration(file string) (record.Calibration, error) {
	none := record.Calibration{
		APIVersion: record.APIVersion, Kind: record.CalibrationKind, Schema: record.Schema,
		Machine: thisMachine(), Scaler: Version(),
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading the calibration: %w", err)
	}
	var c record.Calibration
	if err := json.Unmarshal(text, &c); err != nil || c.Kind != none.Kind || c.APIVersion != none.APIVersion || c.Schema != none.Schema || c.Machine != none.Machine {
		return none, nil // it is made anew
	}
	return c, nil
}

// keepCalibration merges points into the file, in place of those of the same
// variant and size.
func keepCalibration(file string, points []record.CalibrationPoint) error {
	c, err := readCalibration(file)
	if err != nil {
		return err
	}
	for _, p := range points {
		c.Points = slices.DeleteFunc(c.Points, func(old record.CalibrationPoint) bool { return old.XDS == p.XDS && old.Sidecars == p.Sidecars })
		c.Points = append(c.Points, p)
	}
	slices.SortFunc(c.Points, func(a, b record.CalibrationPoint) int {
		if a.XDS != b.XDS {
			return strings.Compare(a.XDS, b.XDS)
		}
		return a.Sidecars - b.Sidecars
	})
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("keeping the calibration: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("keeping the calibration: %w", err)
	}
	temporary := fmt.Sprintf("%s.%d", file, os.Getpid())
	if err := os.WriteFile(temporary, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("keeping the calibration: %w", err)
	}
	if err := os.Rename(temporary, file); err != nil {
		return fmt.Errorf("keeping the calibration: %w", err)
	}
	return nil
}

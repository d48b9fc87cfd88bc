package calibrate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/pkg/record"
)

// Cached returns the results of earlier calibrations on this machine with this version of
// scaler. It has no points if there were none.
func Cached(programs component.Options) (record.Calibration, error) {
	file, err := cacheFile(programs)
	if err != nil {
		return record.Calibration{}, err
	}
	return readCache(file)
}

// MissingSizes returns the numbers of sidecars that must still be calibrated before the
// floor of a run with this number of pods is known: of the default sizes, those below the
// number, and the first that is not.
func MissingSizes(known record.Calibration, xds string, pods int) []int {
	var missing []int
	for i, n := range defaultSizes {
		if i > 0 && defaultSizes[i-1] >= pods {
			break
		}
		if !slices.ContainsFunc(known.Points, func(p record.CalibrationPoint) bool { return p.XDS == xds && p.Sidecars == n }) {
			missing = append(missing, n)
		}
	}
	return missing
}

// cacheFile returns the path of the file that keeps this machine's calibration by this
// version of scaler.
func cacheFile(programs component.Options) (string, error) {
	dir, err := component.KeptDir(programs, "calibration")
	if err != nil {
		return "", err
	}
	m := place.Machine()
	name := fmt.Sprintf("%s-%d-%s-%s", m.CPUModel, m.CPUs, m.Kernel, component.ScalerVersion())
	name = regexp.MustCompile(`[^A-Za-z0-9.]+`).ReplaceAllString(name, "-")
	return filepath.Join(dir, strings.Trim(name, "-")+".json"), nil
}

// readCache reads the kept calibration. It returns one without points if there is no
// file, or if this version cannot use it.
func readCache(file string) (record.Calibration, error) {
	none := record.Calibration{
		APIVersion: record.APIVersion, Kind: record.CalibrationKind, Schema: record.Schema,
		Machine: place.Machine(), Scaler: component.ScalerVersion(),
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

// addToCache merges points into the file, in place of those of the same
// variant and size.
func addToCache(file string, points []record.CalibrationPoint) error {
	c, err := readCache(file)
	if err != nil {
		return err
	}
	for _, p := range points {
		c.Points = slices.DeleteFunc(c.Points, func(old record.CalibrationPoint) bool { return old.XDS == p.XDS && old.Sidecars == p.Sidecars })
		c.Points = append(c.Points, p)
	}
	slices.SortFunc(c.Points, func(a, b record.CalibrationPoint) int {
		return cmp.Or(strings.Compare(a.XDS, b.XDS), a.Sidecars-b.Sidecars)
	})
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("keeping the calibration: %w", err)
	}
	if err := record.SaveResult(file, c); err != nil {
		return fmt.Errorf("keeping the calibration: %w", err)
	}
	return nil
}

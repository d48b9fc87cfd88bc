package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// resume returns the runs of the ladder whose results are in its output folders, in the order of the ladder: those of a
// ladder of the same scenario that was interrupted or killed. The record of a run that did not come to a result is
// renamed, and the run is done again. Records of something else stay where they are (see [record.Folder.Check]): others
// has by their folders of what they are. A single run resumes nothing unless the ladder says so.
func (l Ladder) resume() (done []record.Run, others map[string]string, err error) {
	specs := l.Runs()
	if len(specs) == 1 && !l.Resumes {
		return nil, nil, nil
	}
	others = map[string]string{}
	for _, spec := range specs {
		dir := filepath.Join(spec.Out, spec.Name())
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		runs, err := record.Read(dir)
		if err != nil {
			return nil, nil, fmt.Errorf("resuming: %w", err)
		}
		earlier := runs[0]
		earlier.Dir = dir
		result := earlier.Status == record.StatusCompleted || earlier.Status == record.StatusUnconverged
		if result || statesItself(&earlier) { // one that was cut short before may be of anything
			others[dir] = spec.differs(&earlier)
		}
		switch {
		case others[dir] != "":
		case result:
			done = append(done, earlier)
		default:
			aside := func(n int) string { return fmt.Sprintf("%s-%s-%d", dir, earlier.Status, n) }
			if err := os.Rename(dir, aside(series.Free(1, aside))); err != nil {
				return nil, nil, fmt.Errorf("resuming: %w", err)
			}
		}
	}
	return done, others, nil
}

// statesItself reports whether a record states what its run is of. The first one of a run does not.
func statesItself(run *record.Run) bool { return len(run.Scenario.Mesh.Pods) > 0 || run.Mesh != nil }

// differs states in what a run is another one than the specification asks for; "" = in nothing. A factor that is left
// to scaler may be any.
func (s Spec) differs(run *record.Run) string {
	asked := s.recorded()
	if s.Instrument.Dilation.Auto {
		asked.Instrument.Dilation = run.Scenario.Instrument.Dilation
	}
	was := s
	s.Scenario, was.Scenario = asked, run.Scenario
	switch {
	case !statesItself(run):
		return "its record does not state what it is of"
	case run.Environment.Scaler != component.ScalerVersion():
		return fmt.Sprintf("it is of another scaler, %q, and this one is %q", run.Environment.Scaler, component.ScalerVersion())
	case s.Captured != nil && (run.Mesh == nil || run.Mesh.Digest != s.Captured.Digest):
		return "it is of another captured mesh"
	case run.Repeat != s.Repeat:
		return fmt.Sprintf("it is repeat %d, not %d", run.Repeat, s.Repeat)
	case s.Asked() != was.Asked():
		return "it is of another scenario" + fieldsThatDiffer(asked, run.Scenario)
	}
	return ""
}

// shownDifferences is the number of fields that fieldsThatDiffer names.
const shownDifferences = 3

// fieldsThatDiffer names fields in which what is asked for is another scenario than that of a record.
func fieldsThatDiffer(asked, was scenario.Scenario) string {
	var all []string
	for _, p := range scenario.Parameters {
		now, _ := asked.Text(p.Path)
		if then, _ := was.Text(p.Path); now != then {
			all = append(all, fmt.Sprintf("%s is %q there, not %q", p.Path, then, now))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + output.FirstOf(all, shownDifferences)
}

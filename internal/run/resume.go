package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
)

// resume returns the runs of the ladder whose results are in its output folders, in the order of the ladder: those of a
// ladder of the same scenario that was interrupted or killed. The record of a run that did not come to a result is
// renamed, and the run is done again. Records of another scenario stay where they are; see [record.Folder.Check].
// A single run resumes nothing.
func (l Ladder) resume() (done []record.Run, err error) {
	specs := l.Runs()
	if len(specs) == 1 {
		return nil, nil
	}
	for _, spec := range specs {
		dir := filepath.Join(spec.Out, spec.Name())
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		runs, err := record.Read(dir)
		if err != nil {
			return nil, fmt.Errorf("resuming: %w", err)
		}
		earlier := runs[0]
		earlier.Dir = dir
		switch {
		case !spec.asksFor(&earlier):
		case earlier.Status == record.StatusCompleted, earlier.Status == record.StatusUnconverged:
			done = append(done, earlier)
		default:
			aside := func(n int) string { return fmt.Sprintf("%s-%s-%d", dir, earlier.Status, n) }
			if err := os.Rename(dir, aside(series.Free(1, aside))); err != nil {
				return nil, fmt.Errorf("resuming: %w", err)
			}
		}
	}
	return done, nil
}

// asksFor reports whether a run is of what the specification asks for, by the same scaler. A factor that is left to
// scaler may be any.
func (s Spec) asksFor(run *record.Run) bool {
	asked := s.recorded()
	if s.Instrument.Dilation.Auto {
		asked.Instrument.Dilation = run.Scenario.Instrument.Dilation
	}
	was := s
	s.Scenario, was.Scenario = asked, run.Scenario
	sameMesh := s.Captured == nil || run.Mesh != nil && run.Mesh.Digest == s.Captured.Digest
	return sameMesh && run.Environment.Scaler == component.ScalerVersion() && run.Repeat == s.Repeat && s.Asked() == was.Asked()
}

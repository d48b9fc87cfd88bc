package report

import (
	"io"

	"scaler.mesh/scaler/internal/analyse/report/sheet"
	"scaler.mesh/scaler/pkg/record"
)

// CSV writes a row for each run and a column for each figure, as sheet.CSV states it.
// Runs of one name are named by their folders.
func CSV(w io.Writer, runs []record.Run) error {
	return sheet.CSV(w, withUniqueNames(sorted(runs)))
}

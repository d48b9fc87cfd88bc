package report

import (
	"reflect"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// A text from a record that looks like a mark stays a text, on the page too.
func TestMarksAreNotReadFromTexts(t *testing.T) {
	run := fullRun()
	run.Name = "a [1]"
	run.Warnings = []record.Warning{{About: "pods.ready", Reason: record.ReasonNotMeasured, Detail: "x"}}
	r := runReport{run: &run}
	r.warnings.add(&run)
	if c := r.warnings.cell(unmarked(run.Name)); c.Text != run.Name || c.Mark != nil {
		t.Errorf("the cell is %+v", c)
	}
	row := r.pods().Rows[0]
	var limited []string
	for i, c := range row {
		if c.marks != nil {
			limited = append(limited, r.pods().Head[i].text)
			if !strings.HasSuffix(c.String(), " [1]") {
				t.Errorf("prints as %q", c)
			}
		}
	}
	if want := []string{"ready"}; !reflect.DeepEqual(limited, want) {
		t.Errorf("limited are %q, want %q", limited, want)
	}
}

func TestMarks(t *testing.T) {
	for want, m := range map[string]marks{"x": nil, "x [2]": {2}, "x [1,3,12]": {1, 3, 12}} {
		if got := m.on("x").String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

package hack

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// The scenario of each record in testdata is a file for -f that asks for the same.
func TestScenariosOfRecordsReadBack(t *testing.T) {
	read := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(path, "testdata") || filepath.Ext(path) != ".json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var list record.RunList
		if json.Unmarshal(text, &list) != nil || list.Kind != record.ListKind {
			var one record.Run
			if json.Unmarshal(text, &one) != nil || one.Kind != record.Kind {
				return nil // no record
			}
			list.Items = []record.Run{one}
		}
		for _, run := range list.Items {
			if run.Kind == "" {
				continue // a test of what is unknown
			}
			read++
			if err := readsBack(run.Scenario); err != nil {
				t.Errorf("%s: %s: %v", path, run.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 10 {
		t.Errorf("%d records read, want all in testdata, 10 at least", read)
	}
}

func readsBack(asked scenario.Scenario) error {
	text, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	d := scenario.New(scenario.Default())
	if err := d.Read("run.json", bytes.NewReader(text)); err != nil {
		return err
	}
	if err := d.Check(d.Scenario.Command()); err != nil {
		return err
	}
	if got := d.Scenario.Applicable(); !reflect.DeepEqual(got, asked) {
		again, err := json.Marshal(got)
		if err != nil {
			return err
		}
		return &scenario.Error{Value: string(again), Want: string(text)}
	}
	return nil
}

package capacity

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// A plan states what the largest upgrade among its runs needed, and of which size it was.
func TestUpgradeInAPlan(t *testing.T) {
	w := permissive()
	runs := w.runs(nil, 2, 200, 400, 600, 800)
	plan, err := Make(runs, Options{Pods: 1600})
	if err != nil || plan.Upgrade != nil {
		t.Fatalf("without upgrades: %+v, %v", plan.Upgrade, err)
	}
	for i := range runs {
		runs[i].Upgrade = &record.Upgrade{From: record.UpgradeVersion{Version: "1.29.1"}, To: record.UpgradeVersion{Version: "1.31.0"}}
		if pods := runs[i].PodCount(); pods < 800 {
			runs[i].Upgrade.Room = &record.UpgradeRoom{Cores: new(float64(pods) / 1000), CoresStage: "wave-2", MemoryBytes: new(float64(pods) * 1e6), MemoryStage: "wave-2"}
		}
	}
	plan, err = Make(runs, Options{Pods: 1600})
	if err != nil {
		t.Fatal(err)
	}
	if u := plan.Upgrade; u == nil || u.Pods != 600 || u.Cores != 0.6 || u.MemoryBytes != 600e6 || u.From != "1.29.1" || u.To != "1.31.0" {
		t.Fatalf("%+v, want that of 600 pods", plan.Upgrade)
	}
	var text strings.Builder
	if err := Print(&text, "wide", plan); err != nil {
		t.Fatal(err)
	}
	want := "During the upgrade from 1.29.1 to 1.31.0 the cluster needs 0.6 cores and 572MiB more than before for control planes, at its peak in wave 2, measured with 600 pods; with 1600 it was not measured.\n"
	if !strings.Contains(text.String(), want) {
		t.Errorf("the plan does not say %q:\n%s", want, text.String())
	}
}

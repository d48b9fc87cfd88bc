package xdsprobe

import (
	"slices"
	"testing"

	"scaler.mesh/scaler/pkg/convergence"
)

func TestMarked(t *testing.T) {
	if c := marked(nil, []byte("nothing here, not even scaler-mark")); c != nil {
		t.Errorf("without a marker the content is %+v, want none", c)
	}
	held := &convergence.Content{Members: []string{"a"}}
	got := marked(held, []byte("\x0a\x10scaler-marker-7f\x12scaler-marker-07f-x scaler-marker-7f"))
	if want := []string{"scaler-marker-07f", "scaler-marker-7f"}; !slices.Equal(got.Markers, want) {
		t.Errorf("markers are %q, want %q", got.Markers, want)
	}
	if got != held || !slices.Equal(got.Members, []string{"a"}) {
		t.Errorf("the content was replaced: %+v", got)
	}
}

package xdsprobe

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"

	"scaler.mesh/scaler/pkg/convergence"
)

var _ = It("finds markers in resources", func() {
	t := GinkgoTB()
	if c := marked(nil, []byte("nothing here, not even scaler-mark")); c != nil {
		t.Errorf("without a marker the content is %+v, want none", c)
	}
	held := &convergence.Content{Members: []string{"a"}}
	// One is cut short, and behind one a tag is a letter.
	got := marked(held, []byte("\x0a\x11"+Marker("7f")+"p\x01\x12scaler-marker-1\x12"+Marker("07f")+"x "+Marker("7f")))
	if want := []string{Marker("07f"), Marker("7f")}; !slices.Equal(got.Markers, want) {
		t.Errorf("markers are %q, want %q", got.Markers, want)
	}
	if got != held || !slices.Equal(got.Members, []string{"a"}) {
		t.Errorf("the content was replaced: %+v", got)
	}
})

package run

import (
	"slices"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// An error that names examples says that there are more.
func TestNamed(t *testing.T) {
	for count, want := range map[int][]string{2: {"EnvoyFilter a/b", "WasmPlugin a/c"}, 5: {"EnvoyFilter a/b", "WasmPlugin a/c", "and 3 more"}} {
		if got := named(record.NotChecked{Count: count, Examples: []string{"EnvoyFilter a/b", "WasmPlugin a/c"}}); !slices.Equal(got, want) {
			t.Errorf("of %d: %q, want %q", count, got, want)
		}
	}
}

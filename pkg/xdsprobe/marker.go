package xdsprobe

import (
	"bytes"
	"slices"

	"scaler.mesh/scaler/pkg/convergence"
)

// MarkerPrefix begins the markers of changes that are followed: the prefix and
// lower-case letters and digits behind it. Whoever makes a change puts its marker
// into a string that the control plane passes on.
const MarkerPrefix = "scaler-marker-"

// marked returns the content of a resource with the markers that are found in
// its bytes, wherever they stand.
func marked(c *convergence.Content, b []byte) *convergence.Content {
	var markers []string
	for {
		i := bytes.Index(b, []byte(MarkerPrefix))
		if i < 0 {
			break
		}
		end := i + len(MarkerPrefix)
		for end < len(b) && (b[end] >= 'a' && b[end] <= 'z' || b[end] >= '0' && b[end] <= '9') {
			end++
		}
		markers = append(markers, string(b[i:end]))
		b = b[end:]
	}
	if markers == nil {
		return c
	}
	if c == nil {
		c = &convergence.Content{}
	}
	slices.Sort(markers)
	c.Markers = slices.Compact(markers)
	return c
}

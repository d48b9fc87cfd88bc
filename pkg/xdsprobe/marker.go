package xdsprobe

import (
	"bytes"
	"slices"

	"scaler.mesh/scaler/pkg/convergence"
)

// A marker is the id of a followed change, enclosed by these bytes. It needs an end
// because the byte after a string in a message is the next field's tag, which may be a
// letter.
const (
	markerBegin = "scaler-marker-"
	markerEnd   = '-'
)

// Marker returns the marker of a change. Whoever makes the change puts it into a string
// that the control plane passes on. The id consists of lower-case letters and digits.
func Marker(id string) string { return markerBegin + id + string(markerEnd) }

// marked returns the content of a resource with the markers found anywhere in its bytes.
func marked(c *convergence.Content, b []byte) *convergence.Content {
	var markers []string
	for {
		i := bytes.Index(b, []byte(markerBegin))
		if i < 0 {
			break
		}
		end := i + len(markerBegin)
		for end < len(b) && (b[end] >= 'a' && b[end] <= 'z' || b[end] >= '0' && b[end] <= '9') {
			end++
		}
		if end < len(b) && b[end] == markerEnd {
			end++
			markers = append(markers, string(b[i:end]))
		}
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

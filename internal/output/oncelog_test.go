package output

import (
	"slices"
	"testing"
)

func TestOnceLog(t *testing.T) {
	var lines []string
	l := OnceLog{Log: func(msg string) { lines = append(lines, msg) }}
	l.Once("token", "no token")
	l.Once("stream", "no stream")
	l.Once("token", "no token again")
	if want := []string{"no token", "no stream"}; !slices.Equal(lines, want) {
		t.Errorf("logged %q, want %q", lines, want)
	}
}

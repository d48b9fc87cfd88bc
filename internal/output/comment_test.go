package output

import (
	"strings"
	"testing"
)

func TestComment(t *testing.T) {
	const note = "\nThe rest is left out; -o wide has it.\n"
	lines := func(n int) string { return strings.Repeat("- a difference with 40 characters, ä, ä.\n", n) }
	for name, test := range map[string]struct {
		text, end string
		whole     bool
		has       string // at its end
	}{
		"short":         {lines(10), "\nend\n", true, ""},
		"long":          {lines(2000), "\nend\n", false, "ä, ä.\n" + note + "\nend\n"},
		"no end":        {lines(2000), "", false, "ä, ä.\n" + note},
		"a long end":    {lines(10), lines(2000), false, "ä, ä.\n" + note},
		"one line":      {strings.Repeat("a", 70_000), "\nend\n", false, note + "\nend\n"},
		"just too long": {strings.Repeat("\n", CommentBytes-5), "\nend\n", false, note + "\nend\n"},
		"just enough":   {strings.Repeat("\n", CommentBytes-6), "\nend\n", true, ""},
	} {
		got := comment(test.text, test.end)
		if len(got) >= CommentBytes || test.whole != (got == test.text+test.end) || !strings.HasSuffix(got, test.has) {
			t.Errorf("%s: %d bytes, ends with %q", name, len(got), got[max(0, len(got)-100):])
		}
		if all := test.text + test.end; !test.whole && !strings.HasPrefix(all, strings.TrimSuffix(got, note+test.end)) && name != "a long end" {
			t.Errorf("%s: does not begin with its text", name)
		}
	}
}

package output

import "strings"

// CommentBytes is less than a comment on a pull request may have.
const CommentBytes = 60_000

// comment returns Markdown of less than CommentBytes: a text and an end. Where there is no room for all lines of the text, the last
// ones are left out, which a sentence states before the end.
func comment(text, end string) string {
	const note = "\nThe rest is left out; -o wide has it.\n"
	if len(end) > CommentBytes/2 {
		text, end = text+end, ""
	}
	if len(text)+len(end) < CommentBytes {
		return text + end
	}
	room := CommentBytes - 1 - len(note) - len(end)
	return text[:strings.LastIndexByte(text[:room], '\n')+1] + note + end
}

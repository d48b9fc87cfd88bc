package record

import (
	"bytes"
	"io/fs"
	"os"
	"strconv"

	"scaler.mesh/scaler/internal/boundedfile"
)

// A record may come from elsewhere. These bound what reading one costs; scaler's
// own are far below them.
const (
	maxDocument = 64 << 20 // bytes of a run.json
	maxLines    = 2 << 20  // of a file of lines
	maxLine     = 4 << 20  // bytes of one
	maxFile     = 1 << 30  // bytes of any other file
)

// OpenFile opens a file of the run's folder, by its path in there, to be read. It
// has to be a regular file that is in the folder, which a symbolic link out of it is
// not, and no larger than a record's can be. A run that was not read has no files:
// the error has fs.ErrNotExist in it then, too.
func (r *Run) OpenFile(name string) (*os.File, error) {
	if r.Dir == "" {
		return nil, fs.ErrNotExist
	}
	f, err := boundedfile.OpenIn(r.Dir, name, maxFile)
	return f, boundedfile.Cause(err)
}

// readDocument reads a JSON document of a folder. Its errors do not name the file.
func readDocument(dir, name string) ([]byte, error) {
	data, err := boundedfile.ReadIn(dir, name, maxDocument)
	if err != nil {
		return nil, boundedfile.Cause(err)
	}
	disarm(data)
	return data, nil
}

// disarm makes JSON harmless to print: control characters in its texts, which a
// terminal would obey, become question marks or U+FFFD. Tabs and line ends
// stay. It works in place, and what is no JSON stays none.
func disarm(data []byte) {
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == 0x7f:
			data[i] = '?'
		case c == 0xc2 && i+1 < len(data) && data[i+1] >= 0x80 && data[i+1] <= 0x9f: // U+0080 to U+009F
			data[i], data[i+1] = '?', '?'
			i++
		case c == '\\' && i+1 < len(data):
			i++
			switch data[i] {
			case 'b', 'f':
				data[i] = 't'
			case 'u':
				if i+4 < len(data) && control(data[i+1:i+5]) {
					copy(data[i+1:], "fffd")
				}
			}
		}
	}
}

// control reports whether four hexadecimal digits are a control character, or one
// that changes the direction of text, which hides what stands there.
func control(digits []byte) bool {
	n, err := strconv.ParseUint(string(digits), 16, 16)
	switch {
	case err != nil, n == '\t', n == '\n', n == '\r':
		return false
	case n < ' ', n >= 0x7f && n <= 0x9f:
		return true
	default:
		return n >= 0x202a && n <= 0x202e || n >= 0x2066 && n <= 0x2069
	}
}

// lineOf returns the line that a byte is in, from 1.
func lineOf(data []byte, offset int64) int {
	offset = max(0, min(offset, int64(len(data))))
	return 1 + bytes.Count(data[:offset], []byte{'\n'})
}

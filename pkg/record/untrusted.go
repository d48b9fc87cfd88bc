package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A record may come from elsewhere. These bound what reading one costs; scaler's
// own are far below them.
const (
	maxDocument = 64 << 20 // bytes of a run.json
	maxLines    = 2 << 20  // of a file of lines
	maxLine     = 4 << 20  // bytes of one
	maxFile     = 1 << 30  // bytes of any other file
)

// errNotAFile reports that a file of a record is a FIFO, a device or the like.
var errNotAFile = errors.New("it is no regular file")

// OpenFile opens a file of the run's folder, by its path in there, to be read. It
// has to be a regular file that is in the folder, which a symbolic link out of it is
// not, and no larger than a record's can be. A run that was not read has no files:
// the error has fs.ErrNotExist in it then, too.
func (r *Run) OpenFile(name string) (*os.File, error) {
	if r.Dir == "" {
		return nil, fs.ErrNotExist
	}
	return openIn(r.Dir, name, maxFile)
}

// openIn opens a regular file below a folder. It waits for nothing, as opening a
// FIFO does. Its errors do not name the file.
func openIn(dir, name string, most int64) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, unwrapPath(err)
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, unwrapPath(err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = unwrapPath(err)
	case !info.Mode().IsRegular():
		err = errNotAFile
	case info.Size() > most:
		err = fmt.Errorf("it has %d bytes: want %d at most", info.Size(), most)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// readDocument reads a JSON document of a folder.
func readDocument(dir, name string) ([]byte, error) {
	f, err := openIn(dir, name, maxDocument)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1)) // it may grow
	if err != nil {
		return nil, unwrapPath(err)
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("it has more than %d bytes", maxDocument)
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

// lineOf is the line that a byte is in, from 1.
func lineOf(data []byte, offset int64) int {
	offset = max(0, min(offset, int64(len(data))))
	return 1 + bytes.Count(data[:offset], []byte{'\n'})
}

package capture

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	kubeyaml "sigs.k8s.io/yaml"
)

// MaxFile bounds what is read of a file, packed and unpacked, in bytes.
const MaxFile = 1 << 30

// errTooLong reports that there is more text than is read.
var errTooLong = fmt.Errorf("want %d bytes at most", MaxFile)

// eachValue calls take for each value of a text in JSON: a stream of values in JSON, or documents in
// YAML, one of which may be such a stream. The text is in UTF-8 or UTF-16, with a byte order mark or
// without, with any ends of lines, and may be compressed by gzip. place is where the value stands, as in
// "document 3" or "document 1: value 7". Errors have the place.
func eachValue(from io.Reader, take func(place string, value []byte) error) error {
	text, err := plainText(from)
	if err != nil {
		return err
	}
	documents, number := &splitter{lines: bufio.NewReaderSize(&lineEnds{from: text}, 1<<16)}, 0
	for {
		document, err := documents.next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if isBlank(document) {
			continue
		}
		number++
		if err := valuesOf(document, fmt.Sprintf("document %d", number), take); err != nil {
			return err
		}
	}
}

// plainText returns a text in UTF-8, unpacked.
func plainText(from io.Reader) (io.Reader, error) {
	packed := bufio.NewReader(from)
	text := io.Reader(packed)
	if magic, _ := packed.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(packed)
		if err != nil {
			return nil, fmt.Errorf("unpacking it: %w", err)
		}
		text = unpacked
	}
	begin := bufio.NewReader(&limited{from: text, left: MaxFile})
	head, _ := begin.Peek(2)
	if len(head) < 2 {
		return begin, nil
	}
	switch { // the first character of YAML and JSON is one of ASCII
	case head[0] == 0 && head[1] == 0:
		return nil, errors.New("want text in UTF-8 or UTF-16")
	case head[1] == 0:
		return transform.NewReader(begin, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder()), nil
	case head[0] == 0:
		return transform.NewReader(begin, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewDecoder()), nil
	}
	return transform.NewReader(begin, unicode.BOMOverride(transform.Nop)), nil
}

// limited fails where a text goes on for too long, at which io.LimitReader would end it.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLong
	}
	n, err := l.from.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// lineEnds reads a text with "\n" at the end of each line, where others have "\r\n" or "\r".
type lineEnds struct {
	from  io.Reader
	after bool // the last character was "\r"
}

func (l *lineEnds) Read(p []byte) (int, error) {
	for {
		n, err := l.from.Read(p)
		kept := 0
		for _, c := range p[:n] {
			if c == '\n' && l.after {
				l.after = false
				continue
			}
			if l.after = c == '\r'; l.after {
				c = '\n'
			}
			p[kept] = c
			kept++
		}
		if kept > 0 || n == 0 || err != nil {
			return kept, err
		}
	}
}

// splitter divides a text at the marks that begin and end documents of YAML, which are no part of a value:
// they stand at the beginning of a line.
type splitter struct {
	lines *bufio.Reader
	rest  []byte // of the line of a mark
	done  bool   // there are no further lines
}

// next returns the next document, or io.EOF.
func (s *splitter) next() ([]byte, error) {
	document := s.rest
	if s.rest = nil; s.done && document == nil {
		return nil, io.EOF
	}
	for !s.done {
		line, err := s.lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		s.done = err != nil
		if mark, after, ok := cutMark(line); ok {
			if mark == "---" && len(bytes.TrimSpace(after)) > 0 {
				s.rest = after
			}
			return document, nil
		}
		document = append(document, line...)
	}
	return document, nil
}

// cutMark cuts the mark off the line that begins or ends a document.
func cutMark(line []byte) (mark string, after []byte, ok bool) {
	for _, mark := range []string{"---", "..."} {
		if after, found := bytes.CutPrefix(line, []byte(mark)); found && (len(after) == 0 || strings.ContainsRune(" \t\n", rune(after[0]))) {
			return mark, after, true
		}
	}
	return "", nil, false
}

// isBlank reports whether a document has nothing but comments and directives.
func isBlank(document []byte) bool {
	for line := range bytes.Lines(document) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// valuesOf calls take for the values of a document: several in JSON, or one in YAML.
func valuesOf(document []byte, place string, take func(string, []byte) error) error {
	fail := func(err error) error { return fmt.Errorf("%s: %w", place, err) }
	trimmed := bytes.TrimLeft(document, " \t\n\x1e") // records of JSON text sequences begin with a separator
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		values, err := jsonValues(bytes.ReplaceAll(trimmed, []byte{0x1e}, []byte{'\n'}))
		if err == nil {
			for i, value := range values {
				at := place
				if len(values) > 1 {
					at = fmt.Sprintf("%s: value %d", place, i+1)
				}
				if err := take(at, value); err != nil {
					return fmt.Errorf("%s: %w", at, err)
				}
			}
			return nil
		}
		if len(values) > 0 || errors.Is(err, io.ErrUnexpectedEOF) {
			return fail(fmt.Errorf("value %d: want JSON: %w", len(values)+1, err))
		}
		// It may be YAML in braces, of which a parser would take the first and no more.
		decoder := yaml.NewDecoder(bytes.NewReader(document))
		var first, next yaml.Node
		if err := decoder.Decode(&first); err == nil && !errors.Is(decoder.Decode(&next), io.EOF) {
			return fail(errors.New("something follows the value: want --- between two"))
		}
	}
	value, err := kubeyaml.YAMLToJSONStrict(document)
	if err != nil && yaml.Unmarshal(document, new(any)) == nil { // each key is there once: one that replaces a merged one is not there twice
		value, err = kubeyaml.YAMLToJSON(document)
	}
	if err != nil {
		return fail(errors.New(strings.TrimPrefix(err.Error(), "yaml: ")))
	}
	if err := take(place, value); err != nil {
		return fail(err)
	}
	return nil
}

// jsonValues returns the values of a stream in JSON, in front of its error.
func jsonValues(text []byte) (values [][]byte, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var value json.RawMessage
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return values, err
		}
		values = append(values, value)
	}
}

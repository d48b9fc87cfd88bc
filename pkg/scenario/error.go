package scenario

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Error is a field, of a scenario or of other options, whose value cannot be used.
type Error struct {
	Path  string // of the field, as in mesh.pods, or its name; "" where the caller knows it
	Line  int    // of the document, from 1; 0 = it was not read from one
	Value string // as it is printed
	Want  string // what can be used, as in "1 or more"
}

// Error returns the error as in `mesh.pods: got 0, want 1 or more`.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	if e.Value != "" {
		fmt.Fprintf(&b, "got %s, ", e.Value)
	}
	b.WriteString("want " + e.Want)
	return b.String()
}

// Refuse makes an error of a field. value is printed with quotes if it is a string; want is
// a format, and what is wanted in words.
func Refuse(path string, value any, want string, args ...any) error {
	return &Error{Path: path, Value: printed(value), Want: fmt.Sprintf(want, args...)}
}

// printed returns a value as an error shows it.
func printed(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return fmt.Sprintf("%q", v)
	case time.Duration, Duration:
		return fmt.Sprint(v)
	case fmt.Stringer:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(value)
}

// wrong makes an error of a leaf, which does not know its path.
func wrong(text, want string) error { return &Error{Value: fmt.Sprintf("%q", text), Want: want} }

// oneOf lists alternatives as a sentence does.
func oneOf[T ~string](all []T) string {
	texts := textsOf(all)
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

// textsOf converts values to strings.
func textsOf[T ~string](all []T) []string {
	var texts []string
	for _, one := range all {
		texts = append(texts, string(one))
	}
	return texts
}

// CheckOneOf checks that the field of a path has one of the allowed values.
// Its error is of type *[Error].
func CheckOneOf(path, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return Refuse(path, value, "%s", oneOf(allowed))
}

// CheckAddress checks that the field of a path is HOST:PORT of a server to
// connect to. Its error is of type *[Error].
func CheckAddress(path, address string) error {
	if host, port := splitAddress(address); host != "" && port > 0 {
		return nil
	}
	return Refuse(path, address, "HOST:PORT, as in 127.0.0.1:15010")
}

// CheckListenAddress checks that the field of a path is HOST:PORT of a server
// to start. HOST may be empty: the server then listens on all addresses. least
// is the smallest PORT: 0 if any free port will do. Its error is of type
// *[Error].
func CheckListenAddress(path, address string, least int) error {
	if _, port := splitAddress(address); port >= least {
		return nil
	}
	return Refuse(path, address, "HOST:PORT, as in 127.0.0.1:15090")
}

// splitAddress returns the parts of HOST:PORT; port is -1 if the text is
// something else.
func splitAddress(address string) (host string, port int) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", -1
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", -1
	}
	return host, int(number)
}

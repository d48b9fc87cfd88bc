package dataplane

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// errMalformed is in the error of every response that does not comply with RFC 9112.
var errMalformed = errors.New("malformed response")

// Limits of the size of a response's head.
const (
	lineLimit   = 8 << 10 // also the reader's buffer
	headerLimit = 64 << 10
	interimMost = 8 // responses of class 1xx before the one that counts
)

// response is the part of a response that is kept: the body is read and dropped.
type response struct {
	status int
	body   int64 // bytes
	// reusable reports that the next response may follow on the same connection.
	reusable bool
}

// readResponse reads one response to a GET request, with its body. Where RFC 9112 allows
// to be lenient or to refuse, it refuses: a generator that misreads the end of a response
// would count the wrong one.
func readResponse(r *bufio.Reader) (response, error) {
	for range interimMost {
		head, err := readHead(r)
		if err != nil {
			return response{}, err
		}
		if head.status >= 200 {
			return readBody(r, head)
		}
		if head.status == 101 {
			return response{}, fmt.Errorf("%w: it switches protocols without a request", errMalformed)
		}
	}
	return response{}, fmt.Errorf("%w: more than %d interim ones", errMalformed, interimMost)
}

// responseHead holds what status line and headers say about the rest of the response.
type responseHead struct {
	status  int
	minor   byte  // of HTTP/1.x
	length  int64 // -1 = not stated
	chunked bool
	close   bool
	alive   bool // keep-alive is stated, which HTTP/1.0 needs
}

func readHead(r *bufio.Reader) (responseHead, error) {
	line, err := readLine(r)
	if err != nil {
		return responseHead{}, err
	}
	h, err := parseStatusLine(line)
	if err != nil {
		return h, err
	}
	for total := 0; ; {
		line, err := readLine(r)
		if err != nil {
			return h, unexpected(err)
		}
		if len(line) == 0 {
			return h, nil
		}
		if total += len(line); total > headerLimit {
			return h, fmt.Errorf("%w: headers of more than %d bytes", errMalformed, headerLimit)
		}
		if err := h.field(line); err != nil {
			return h, err
		}
	}
}

// readLine reads up to CRLF, without it. The line is valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("%w: a line of more than %d bytes", errMalformed, r.Size())
	case err != nil && len(line) > 0:
		return nil, unexpected(err)
	case err != nil:
		return nil, err
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return nil, fmt.Errorf("%w: a line that does not end in CR LF", errMalformed)
	}
	return line, nil
}

// unexpected returns io.ErrUnexpectedEOF for an end in the middle of a response, and any
// other error unchanged.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseStatusLine accepts HTTP/1.x, a space, three digits, and a space with any reason
// after it (RFC 9112, 4); the last two may be missing, as some servers omit them.
func parseStatusLine(line []byte) (responseHead, error) {
	h := responseHead{length: -1}
	rest, ok := bytes.CutPrefix(line, []byte("HTTP/1."))
	if !ok || len(rest) < 5 || rest[0] != '0' && rest[0] != '1' || rest[1] != ' ' || len(rest) > 5 && rest[5] != ' ' {
		return h, fmt.Errorf("%w: status line %.40q", errMalformed, line)
	}
	for _, digit := range rest[2:5] {
		if digit < '0' || digit > '9' {
			return h, fmt.Errorf("%w: status line %.40q", errMalformed, line)
		}
		h.status = 10*h.status + int(digit-'0')
	}
	if h.status < 100 {
		return h, fmt.Errorf("%w: status %d", errMalformed, h.status)
	}
	h.minor = rest[0] - '0'
	return h, nil
}

// field processes one header. Only headers that determine the end of the response and
// whether another follows have an effect.
func (h *responseHead) field(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 || bytes.ContainsFunc(name, notToken) {
		return fmt.Errorf("%w: header %.40q", errMalformed, line)
	}
	value = bytes.Trim(value, " \t")
	if bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return fmt.Errorf("%w: header %.40q", errMalformed, line)
	}
	switch {
	case is(name, "Content-Length"):
		n, err := parseLength(value)
		if err != nil || h.length >= 0 && h.length != n {
			return fmt.Errorf("%w: header %.40q", errMalformed, line)
		}
		h.length = n
	case is(name, "Transfer-Encoding"):
		if h.chunked || h.minor == 0 || !is(value, "chunked") {
			return fmt.Errorf("%w: header %.40q", errMalformed, line)
		}
		h.chunked = true
	case is(name, "Connection"):
		for option := range bytes.SplitSeq(value, []byte(",")) {
			option = bytes.Trim(option, " \t")
			h.close = h.close || is(option, "close")
			h.alive = h.alive || is(option, "keep-alive")
		}
	}
	return nil
}

func is(text []byte, word string) bool { return bytes.EqualFold(text, []byte(word)) }

// notToken reports whether a character is not allowed in a field's name (RFC 9110,
// 5.6.2).
func notToken(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return r >= 0x80 || !bytes.ContainsRune([]byte("!#$%&'*+-.^_`|~"), r)
}

// parseLength accepts only digits: strconv would accept a sign.
func parseLength(text []byte) (int64, error) {
	if len(text) == 0 || len(text) > 18 {
		return 0, errMalformed
	}
	var n int64
	for _, digit := range text {
		if digit < '0' || digit > '9' {
			return 0, errMalformed
		}
		n = 10*n + int64(digit-'0')
	}
	return n, nil
}

// readBody reads the body (RFC 9112, 6.3).
func readBody(r *bufio.Reader, h responseHead) (response, error) {
	answer := response{status: h.status, reusable: !h.close && (h.minor == 1 || h.alive)}
	var err error
	switch {
	case h.chunked && h.length >= 0:
		return answer, fmt.Errorf("%w: both a length and chunks", errMalformed)
	case h.status == 204 || h.status == 304:
		if h.chunked || h.status == 204 && h.length > 0 {
			return answer, fmt.Errorf("%w: status %d with a body", errMalformed, h.status)
		}
	case h.chunked:
		answer.body, err = readChunks(r)
	case h.length >= 0:
		answer.body, err = h.length, discard(r, h.length)
	default: // until the server closes
		answer.reusable = false
		answer.body, err = r.WriteTo(io.Discard)
	}
	return answer, err
}

// discard reads n bytes.
func discard(r *bufio.Reader, n int64) error {
	for n > 0 {
		some, err := r.Discard(int(min(n, 1<<20)))
		if err != nil {
			return unexpected(err)
		}
		n -= int64(some)
	}
	return nil
}

// readChunks reads a chunked body with its trailer (RFC 9112, 7.1).
func readChunks(r *bufio.Reader) (total int64, err error) {
	for {
		line, err := readLine(r)
		if err != nil {
			return total, unexpected(err)
		}
		size, _, _ := bytes.Cut(line, []byte(";")) // extensions mean nothing to us
		n, err := strconv.ParseUint(string(bytes.TrimRight(size, " \t")), 16, 63)
		if err != nil || len(size) > 16 {
			return total, fmt.Errorf("%w: chunk size %.40q", errMalformed, line)
		}
		if n == 0 {
			return total, readTrailer(r)
		}
		if err := discard(r, int64(n)); err != nil {
			return total, err
		}
		if end, err := readLine(r); err != nil {
			return total, unexpected(err)
		} else if len(end) != 0 {
			return total, fmt.Errorf("%w: a chunk longer than its size", errMalformed)
		}
		total += int64(n)
	}
}

func readTrailer(r *bufio.Reader) error {
	for total := 0; total <= headerLimit; {
		line, err := readLine(r)
		if err != nil {
			return unexpected(err)
		}
		if len(line) == 0 {
			return nil
		}
		name, _, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsFunc(name, notToken) {
			return fmt.Errorf("%w: trailer %.40q", errMalformed, line)
		}
		total += len(line)
	}
	return fmt.Errorf("%w: a trailer of more than %d bytes", errMalformed, headerLimit)
}

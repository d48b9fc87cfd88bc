package dataplane

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
)

var _ = It("reads responses", func() {
	t := GinkgoTB()
	for _, c := range []struct {
		text string
		want response
		left string
		err  error
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1", response{200, 5, true}, "HTTP/1.1", nil},
		{"HTTP/1.1 204 No Content\r\n\r\nx", response{204, 0, true}, "x", nil},
		{"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", response{304, 0, true}, "", nil},
		{"HTTP/1.1 503 \r\ncontent-length:0\r\nconnection: Close\r\n\r\n", response{503, 0, false}, "", nil},
		{"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", response{200, 0, true}, "", nil},
		{"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", response{200, 1, false}, "", nil},
		{"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\nx", response{200, 1, true}, "", nil},
		{"HTTP/1.1 200 OK\r\n\r\nuntil the end", response{200, 13, false}, "", nil},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nnext", response{200, 13, true}, "next", nil},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", response{200, 0, true}, "", nil},

		{"", response{}, "", io.EOF},
		{"HTTP/1.1 200 OK\r\nContent-Le", response{}, "", io.ErrUnexpectedEOF},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", response{}, "", io.ErrUnexpectedEOF},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", response{}, "", io.ErrUnexpectedEOF},
		{"HTTP/1.1 200 OK\nContent-Length: 0\n\n", response{}, "", errMalformed},
		{"HTTP/2.0 200 OK\r\n\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 20 OK\r\n\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 2000 OK\r\n\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 101 Switching\r\n\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", lineLimit) + "\r\n\r\n", response{}, "", errMalformed},
		{"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 70) + "\r\n", response{}, "", errMalformed},
		{strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 20), response{}, "", errMalformed},
	} {
		r := bufio.NewReaderSize(strings.NewReader(c.text), lineLimit)
		got, err := readResponse(r)
		if !errors.Is(err, c.err) || c.err == nil && got != c.want {
			t.Errorf("%.80q is read as %+v, %v: want %+v, %v", c.text, got, err, c.want, c.err)
			continue
		}
		if left, _ := io.ReadAll(r); c.err == nil && string(left) != c.left {
			t.Errorf("%.80q leaves %q: want %q", c.text, left, c.left)
		}
	}
})

// What we read as a response, net/http reads as the same one: the same
// status, as many bytes of body, and the same rest. It takes more than we do.
func FuzzReadResponse(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nTrailer: x\r\n\r\nnext",
		"HTTP/1.0 304 x\r\nConnection: keep-alive, close\r\nContent-Length: 3\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nrest",
		"HTTP/1.1 204\r\nConnection: upgrade\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 8<<10 { // beyond, net/http has limits of its own
			return
		}
		ours := bufio.NewReaderSize(bytes.NewReader(text), lineLimit)
		got, err := readResponse(ours)
		if err != nil {
			return
		}
		theirs := bufio.NewReaderSize(bytes.NewReader(text), lineLimit)
		request := &http.Request{Method: http.MethodGet}
		var want *http.Response
		for want == nil || want.StatusCode < 200 {
			if want, err = http.ReadResponse(theirs, request); err != nil {
				t.Fatalf("%q: we read %+v, net/http returns %v", text, got, err)
			}
		}
		body, err := io.Copy(io.Discard, want.Body)
		if err != nil {
			t.Fatalf("%q: we read %+v, net/http returns for the body: %v", text, got, err)
		}
		if got.status != want.StatusCode || got.body != body {
			t.Fatalf("%q: we read %+v, net/http status %d and %d bytes", text, got, want.StatusCode, body)
		}
		if got.reusable && want.Close {
			t.Fatalf("%q: we would go on, net/http would close", text)
		}
		if !got.reusable {
			return
		}
		rest, _ := io.ReadAll(ours)
		if theirRest, _ := io.ReadAll(theirs); !bytes.Equal(rest, theirRest) {
			t.Fatalf("%q: we leave %q, net/http %q", text, rest, theirRest)
		}
	})
}

package onecall

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// binSuffix ends the names of metadata with binary values.
const binSuffix = "-bin"

func encodeBinary(v string) string { return base64.RawStdEncoding.EncodeToString([]byte(v)) }

// decodeBinary decodes base64 with or without padding.
func decodeBinary(v string) (string, error) {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(v, "="))
	return string(b), err
}

// timeout formats a duration as a grpc-timeout: at most eight digits and a unit.
func timeout(d time.Duration) string {
	const most = 1e8 - 1
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"n", time.Nanosecond}, {"u", time.Microsecond}, {"m", time.Millisecond}, {"S", time.Second}, {"M", time.Minute}} {
		if n := (max(d, 0) + unit.length - 1) / unit.length; n <= most {
			return strconv.FormatInt(int64(n), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(d/time.Hour), 10) + "H"
}

// headers processes the headers of the response, or its trailers.
func (c *Conn) headers(f *http2.MetaHeadersFrame) error {
	if f.Truncated {
		return fmt.Errorf("%w: headers of more than %d bytes", errProtocol, maxHeaderList)
	}
	code := f.PseudoValue("status")
	if c.header == nil && strings.HasPrefix(code, "1") && !f.StreamEnded() {
		return nil // informational
	}
	md := make(metadata.MD, len(f.RegularFields()))
	for _, field := range f.RegularFields() {
		value := field.Value
		if strings.HasSuffix(field.Name, binSuffix) {
			var err error
			if value, err = decodeBinary(value); err != nil {
				return fmt.Errorf("%w: reading header %s: %w", errProtocol, field.Name, err)
			}
		}
		md[field.Name] = append(md[field.Name], value)
	}
	if c.header == nil && (!f.StreamEnded() || code != "200") {
		if err := acceptable(code, md, f.StreamEnded()); err != nil {
			return err
		}
	}
	if !f.StreamEnded() {
		if c.header != nil {
			return fmt.Errorf("%w: headers after headers", errProtocol)
		}
		c.header = md
		return nil
	}
	if c.incoming.have > 0 || c.incoming.body != nil {
		return fmt.Errorf("%w: the stream ended within a message", errProtocol)
	}
	return c.finish(md)
}

// acceptable checks that the headers of a response are gRPC's.
func acceptable(code string, md metadata.MD, ended bool) error {
	kind := strings.Join(md["content-type"], ",")
	ours := strings.HasPrefix(kind, "application/grpc")
	if code == "200" && ours || ended && len(md["grpc-status"]) > 0 {
		if encoding := md["grpc-encoding"]; len(encoding) > 0 && encoding[0] != "identity" {
			return status.Errorf(codes.Internal, "the server compresses with %q, which it was not offered", encoding[0])
		}
		return nil
	}
	return status.Errorf(ofHTTP(code), "the server answered with HTTP status %q and content type %q", code, kind)
}

// ofHTTP returns the status code of a call that was answered by something that does not
// speak gRPC, as defined in gRPC's doc/http-grpc-status-mapping.md.
func ofHTTP(code string) codes.Code {
	switch n, _ := strconv.Atoi(code); n {
	case http.StatusBadRequest:
		return codes.Internal
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.Unimplemented
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return codes.Unavailable
	}
	return codes.Unknown
}

// finish ends the call with the status in the trailers.
func (c *Conn) finish(md metadata.MD) error {
	values := md["grpc-status"]
	if len(values) != 1 {
		return fmt.Errorf("%w: the stream ended without a status", errProtocol)
	}
	code, err := strconv.ParseUint(values[0], 10, 32)
	if err != nil {
		return fmt.Errorf("%w: reading status %q: %w", errProtocol, values[0], err)
	}
	message := unescape(strings.Join(md["grpc-message"], ","))
	delete(md, "grpc-status")
	delete(md, "grpc-message")
	c.trailer, c.answered = md, true
	if err = status.Error(codes.Code(code), message); err == nil {
		err = io.EOF
	}
	c.end(err)
	return nil
}

// unescape decodes a percent-encoded grpc-message; invalid escapes are kept unchanged.
func unescape(s string) string {
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	return s
}

// reset returns the status of a stream that the server has reset, as defined in gRPC's
// doc/PROTOCOL-HTTP2.md.
func (c *Conn) reset(code http2.ErrCode) error {
	became := codes.Internal
	// A server that finds the deadline exceeded cancels, perhaps before this client does.
	if deadline, ok := c.ctx.Deadline(); ok && code == http2.ErrCodeCancel && !time.Now().Before(deadline) {
		return status.FromContextError(context.DeadlineExceeded).Err()
	}
	switch code {
	case http2.ErrCodeRefusedStream:
		became = codes.Unavailable
	case http2.ErrCodeCancel:
		became = codes.Canceled
	case http2.ErrCodeEnhanceYourCalm, http2.ErrCodeFlowControl:
		became = codes.ResourceExhausted
	case http2.ErrCodeInadequateSecurity:
		became = codes.PermissionDenied
	}
	return status.Errorf(became, "the server reset the stream: %v", code)
}

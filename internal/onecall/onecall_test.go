package onecall

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"scaler.mesh/scaler/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// peer is a server frame by frame.
type peer struct {
	*http2.Framer
	t     *testing.T
	conn  net.Conn
	block bytes.Buffer
	coder *hpack.Encoder
}

// meet returns a connection with an open call, and its server, which has read the
// headers.
func meet(t *testing.T, o Options, settings ...http2.Setting) (*Conn, *peer) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	met := make(chan *peer, 1)
	go func() {
		defer close(met)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		p := &peer{t: t, conn: conn, Framer: http2.NewFramer(conn, conn)}
		p.coder = hpack.NewEncoder(&p.block)
		p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err == nil && p.WriteSettings(settings...) == nil {
			met <- p
		}
	}()
	o.Address = listener.Addr().String()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	p := <-met
	t.Cleanup(func() { _ = p.conn.Close() })
	if err := c.Open("/a.B/C", metadata.Pairs("Some", "thing")); err != nil {
		t.Fatal(err)
	}
	headers := until[*http2.MetaHeadersFrame](p)
	if got := fmt.Sprint(headers.PseudoFields(), headers.RegularFields()); !strings.Contains(got, `"/a.B/C"`) || !strings.Contains(got, `"some" = "thing"`) {
		t.Fatalf("headers %s", got)
	}
	return c, p
}

// until reads to the next frame of a type.
func until[F http2.Frame](p *peer) F {
	p.t.Helper()
	for {
		frame, err := p.ReadFrame()
		if err != nil {
			p.t.Fatal(err)
		}
		if f, ok := frame.(F); ok {
			return f
		}
	}
}

func (p *peer) headers(end bool, pairs ...string) {
	p.t.Helper()
	p.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = p.coder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	p.check(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.block.Bytes(), EndStream: end, EndHeaders: true}))
}

func (p *peer) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) accept() { p.headers(false, ":status", "200", "content-type", "application/grpc") }

func framed(message string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

func receive(t *testing.T, c *Conn) string {
	t.Helper()
	b, err := c.Receive()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	return string(b.ReadOnlyData())
}

func TestMessagesAcrossFrames(t *testing.T) {
	c, p := meet(t, Options{})
	p.accept()
	all := append(framed("one"), framed("")...)
	all = append(all, framed(strings.Repeat("x", 5000))...)
	for rest := all; len(rest) > 0; { // in frames that end anywhere, with padding
		n := min(3, len(rest))
		if len(rest) > 1000 && len(rest) < 4000 {
			n = 900
		}
		p.check(p.WriteDataPadded(1, false, rest[:n], make([]byte, len(rest)%7)))
		rest = rest[n:]
	}
	p.headers(true, "grpc-status", "0", "more", "said")
	for _, want := range []string{"one", "", strings.Repeat("x", 5000)} {
		if got := receive(t, c); got != want {
			t.Fatalf("got %.20q of %d bytes, want %.20q", got, len(got), want)
		}
	}
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want EOF", err)
	}
	if !c.Answered() || c.Trailer().Get("more")[0] != "said" || c.Header().Get("content-type")[0] != "application/grpc" {
		t.Errorf("answered %v with %v after %v", c.Answered(), c.Trailer(), c.Header())
	}
}

func TestSendingWaitsForTheWindow(t *testing.T) {
	c, p := meet(t, Options{}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	if err := c.Send([]byte(strings.Repeat("y", 20))); err != nil { // 25 bytes with the prefix
		t.Fatal(err)
	}
	if got := len(until[*http2.DataFrame](p).Data()); got != 10 {
		t.Fatalf("sent %d bytes into a window of 10", got)
	}
	p.accept()
	p.check(p.WriteWindowUpdate(1, 8))
	p.check(p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})) // 90 more
	p.check(p.WriteData(1, false, framed("go on")))
	if got := receive(t, c); got != "go on" {
		t.Fatal(got)
	}
	if err := c.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{8, 7, 0} {
		f := until[*http2.DataFrame](p)
		if len(f.Data()) != want || f.StreamEnded() != (want == 0) {
			t.Fatalf("sent %d bytes, end %v; want %d", len(f.Data()), f.StreamEnded(), want)
		}
	}
	if err := c.Send(nil); err == nil {
		t.Error("sent after the end")
	}
}

func TestWindowsAreOpened(t *testing.T) {
	c, p := meet(t, Options{})
	p.accept()
	message := framed(strings.Repeat("z", 50_000))
	for rest := message; len(rest) > 0; {
		n := min(len(rest), 16<<10)
		p.check(p.WriteData(1, false, rest[:n]))
		rest = rest[n:]
	}
	receive(t, c)
	if err := c.Send(nil); err != nil {
		t.Fatal(err)
	}
	// Half of the windows went by with the second frame but one, and the rest
	// goes along with what is sent.
	sum := map[uint32]int{}
	for range 2 {
		sum[0] += int(until[*http2.WindowUpdateFrame](p).Increment)
		sum[1] += int(until[*http2.WindowUpdateFrame](p).Increment)
	}
	until[*http2.DataFrame](p)
	if want := len(message); sum[0] != want || sum[1] != want {
		t.Errorf("granted %v, want %d", sum, want)
	}
}

func TestPings(t *testing.T) {
	c, p := meet(t, Options{Keepalive: time.Millisecond})
	ended := make(chan error, 1)
	go func() {
		_, err := c.Receive()
		ended <- err
	}()
	until[*http2.PingFrame](p) // that of the keepalive
	p.check(p.WritePing(false, [8]byte{1, 2}))
	for f := until[*http2.PingFrame](p); !f.IsAck() || f.Data != [8]byte{1, 2}; {
		f = until[*http2.PingFrame](p)
	}
	p.headers(true, ":status", "200", "content-type", "application/grpc", "grpc-status", "0")
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// TestEnds checks calls that end with another status than OK.
func TestEnds(t *testing.T) {
	for name, one := range map[string]struct {
		do       func(*peer)
		code     codes.Code
		answered bool
		text     string
	}{
		"refused at once": {func(p *peer) {
			p.headers(true, ":status", "200", "content-type", "application/grpc", "grpc-status", "8", "grpc-message", "too%20many")
		}, codes.ResourceExhausted, true, "too many"},
		"status": {func(p *peer) {
			p.accept()
			p.headers(true, "grpc-status", "7", "grpc-message", "100% no")
		}, codes.PermissionDenied, true, "100% no"},
		"no status":     {func(p *peer) { p.accept(); p.headers(true, "a", "b") }, codes.Internal, false, "without a status"},
		"no number":     {func(p *peer) { p.accept(); p.headers(true, "grpc-status", "OK") }, codes.Internal, false, `reading status "OK"`},
		"end with data": {func(p *peer) { p.accept(); p.check(p.WriteData(1, true, nil)) }, codes.Internal, false, "without a status"},
		"half a message": {func(p *peer) {
			p.accept()
			p.check(p.WriteData(1, false, framed("half")[:7]))
			p.headers(true, "grpc-status", "0")
		}, codes.Internal, false, "within a message"},
		"data first":         {func(p *peer) { p.check(p.WriteData(1, false, framed("x"))) }, codes.Internal, false, "before its headers"},
		"compressed":         {func(p *peer) { p.accept(); p.check(p.WriteData(1, false, []byte{1, 0, 0, 0, 0})) }, codes.Internal, false, "compressed"},
		"too large":          {func(p *peer) { p.accept(); p.check(p.WriteData(1, false, []byte{0, 255, 0, 0, 0})) }, codes.ResourceExhausted, false, "at most"},
		"no gRPC":            {func(p *peer) { p.headers(false, ":status", "200", "content-type", "text/html") }, codes.Unknown, false, `"text/html"`},
		"no such page":       {func(p *peer) { p.headers(true, ":status", "404") }, codes.Unimplemented, false, `"404"`},
		"no server behind":   {func(p *peer) { p.headers(false, ":status", "503") }, codes.Unavailable, false, `"503"`},
		"reset":              {func(p *peer) { p.check(p.WriteRSTStream(1, http2.ErrCodeRefusedStream)) }, codes.Unavailable, false, "reset"},
		"reset for overload": {func(p *peer) { p.check(p.WriteRSTStream(1, http2.ErrCodeEnhanceYourCalm)) }, codes.ResourceExhausted, false, "reset"},
		"away before":        {func(p *peer) { p.check(p.WriteGoAway(0, http2.ErrCodeNo, []byte("bye"))) }, codes.Unavailable, false, "bye"},
		"away after": {func(p *peer) {
			p.check(p.WriteGoAway(1, http2.ErrCodeNo, nil)) // which ends no call
			p.headers(true, ":status", "200", "content-type", "application/grpc", "grpc-status", "5")
		}, codes.NotFound, true, ""},
		"early hints": {func(p *peer) {
			p.headers(false, ":status", "103")
			p.headers(true, ":status", "200", "content-type", "application/grpc", "grpc-status", "5")
		}, codes.NotFound, true, ""},
		"closed":        {func(p *peer) { _ = p.conn.Close() }, codes.Unavailable, false, ""},
		"frame too big": {func(p *peer) { p.accept(); p.check(p.WriteData(1, false, make([]byte, 17<<10))) }, codes.Unavailable, false, "frame too large"},
		"bad headers": {func(p *peer) {
			p.check(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff}, EndHeaders: true}))
		}, codes.Internal, false, ""},
		"bad bytes in a header": {func(p *peer) {
			p.headers(false, ":status", "200", "content-type", "application/grpc", "x-bin", "*")
		}, codes.Internal, false, "x-bin"},
	} {
		t.Run(name, func(t *testing.T) {
			c, p := meet(t, Options{})
			one.do(p)
			for range 2 { // it stays so
				b, err := c.Receive()
				if status.Code(err) != one.code || !strings.Contains(fmt.Sprint(err), one.text) || c.Answered() != one.answered {
					t.Fatalf("got %v, %v, answered %v; want %v, answered %v, %q", b, err, c.Answered(), one.code, one.answered, one.text)
				}
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	o := serve(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Dial(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Open("/grpc.testing.TestService/FullDuplexCall", nil); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Receive()
		ended <- errors.Join(err, c.Close())
	}()
	cancel()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Fatal(err)
	}
	if _, err := Dial(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("dialling with a cancelled context: %v", err)
	}
}

func TestTimeout(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0n", 5: "5n", time.Second: "1000000u", 150 * time.Second: "150000m",
		40 * time.Hour: "144000S", 100_000 * time.Hour: "6000000M", 2_540_000 * time.Hour: "2540000H",
	} {
		if got := timeout(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// pieces is a connection from which as much can be read at once as its next piece
// holds.
type pieces struct {
	net.Conn
	rest [][]byte
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[0])
	if p.rest[0] = p.rest[0][n:]; len(p.rest[0]) == 0 {
		p.rest = p.rest[1:]
	}
	return n, nil
}

func TestRecordsAreReadOneByOne(t *testing.T) {
	whole := []byte("\x17\x03\x03\x00\x05hello\x17\x03\x03\x00\x00\x17\x03\x03\x00\x02hi")
	for _, cut := range []int{1, 3, 4, 7, len(whole)} {
		var parts [][]byte
		for rest := whole; len(rest) > 0; rest = rest[min(cut, len(rest)):] {
			parts = append(parts, rest[:min(cut, len(rest))])
		}
		r := &records{Conn: &pieces{rest: parts}}
		var got []byte
		for {
			b := make([]byte, 100)
			n, err := r.Read(b)
			if err != nil {
				break
			}
			if n > 5 {
				t.Errorf("cut to %d: read %q at once", cut, b[:n])
			}
			got = append(got, b[:n]...)
		}
		if !bytes.Equal(got, whole) {
			t.Errorf("cut to %d: read %q", cut, got)
		}
	}
}

func TestBetweenCalls(t *testing.T) {
	c, p := meet(t, Options{}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3})
	if err := c.Send([]byte("longer than the window")); err != nil {
		t.Fatal(err)
	}
	p.headers(true, ":status", "200", "content-type", "application/grpc", "grpc-status", "0")
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want EOF", err)
	}
	if !c.Again() {
		t.Fatal("no other call")
	}
	if err := c.Send([]byte("to nobody")); err == nil {
		t.Fatal("sent without a call")
	}
	if reset := until[*http2.RSTStreamFrame](p); reset.StreamID != 1 || reset.ErrCode != http2.ErrCodeCancel {
		t.Fatalf("got %v", reset)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Receive()
		ended <- err
	}()
	p.check(p.WriteRSTStream(1, http2.ErrCodeNo)) // of the call that is over
	p.check(p.WriteWindowUpdate(1, 1000))
	p.check(p.WritePing(false, [8]byte{7}))
	if ping := until[*http2.PingFrame](p); !ping.IsAck() || ping.Data[0] != 7 {
		t.Fatalf("got %v", ping)
	}
	if err := c.Open("/a.B/D", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Open("/a.B/E", nil); status.Code(err) != codes.FailedPrecondition {
		t.Fatalf("got %v for a second call during the first", err)
	}
	if headers := until[*http2.MetaHeadersFrame](p); headers.StreamID != 3 {
		t.Fatalf("got stream %d", headers.StreamID)
	}
	if err := c.Send([]byte("also longer than the window")); err != nil {
		t.Fatal(err)
	}
	if data := until[*http2.DataFrame](p); data.StreamID != 3 || len(data.Data()) != 3 {
		t.Fatalf("got %d bytes on stream %d, want 3", len(data.Data()), data.StreamID)
	}
	p.check(p.WriteGoAway(1, http2.ErrCodeNo, nil))
	if err := <-ended; status.Code(err) != codes.Unavailable || c.Answered() || !c.Untouched() {
		t.Fatalf("got %v, want %v", err, codes.Unavailable)
	}
}

// TestWhatComesWithTheEnd has frames in one segment with the end of a call.
func TestWhatComesWithTheEnd(t *testing.T) {
	c, p := meet(t, Options{})
	var segment bytes.Buffer
	conn := p.conn
	p.Framer = http2.NewFramer(&segment, conn)
	p.headers(true, ":status", "200", "content-type", "application/grpc", "grpc-status", "0")
	p.check(p.WritePing(false, [8]byte{7}))
	p.check(p.WritePing(false, [8]byte{8}))
	half := segment.Len() - 5
	if _, err := conn.Write(segment.Bytes()[:half]); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want EOF", err)
	}
	if !c.Again() {
		t.Fatal("no other call")
	}
	if _, err := conn.Write(segment.Bytes()[half:]); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Receive()
		ended <- err
	}()
	for _, want := range []byte{7, 8} {
		if ping := until[*http2.PingFrame](p); !ping.IsAck() || ping.Data[0] != want {
			t.Fatalf("got %v, want the answer to %d", ping, want)
		}
	}
	p.Framer = http2.NewFramer(conn, conn)
	p.check(p.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)) // politely
	if err := <-ended; status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want %v", err, codes.Unavailable)
	}
	if err := c.Ask("/a.B/D", nil, nil); status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v for a call after the end", err)
	}
}

// TestLastCall has the server announce the end while it answers.
func TestLastCall(t *testing.T) {
	c, p := meet(t, Options{})
	p.check(p.WriteGoAway(1, http2.ErrCodeNo, nil))
	p.headers(true, ":status", "200", "content-type", "application/grpc", "grpc-status", "0")
	if _, err := c.Receive(); !errors.Is(err, io.EOF) || !c.Answered() {
		t.Fatalf("got %v, want EOF", err)
	}
	if c.Again() {
		t.Fatal("another call on a connection that ends")
	}
}

// TestAnswerToNobody has the server answer before it was asked.
func TestAnswerToNobody(t *testing.T) {
	c, p := meet(t, Options{})
	p.headers(true, ":status", "200", "content-type", "application/grpc", "grpc-status", "0")
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	c.Again()
	p.block.Reset()
	p.check(p.coder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"}))
	p.check(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: p.block.Bytes(), EndStream: true, EndHeaders: true}))
	if _, err := c.Receive(); status.Code(err) != codes.Internal {
		t.Fatalf("got %v, want %v", err, codes.Internal)
	}
}

// TestHeaderTable has the server shrink its table to nothing and then allow more.
func TestHeaderTable(t *testing.T) {
	c, p := meet(t, Options{}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
	for i, size := range []uint32{64, 4096} {
		p.check(p.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: size}))
		p.block.Reset()
		p.check(p.coder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"}))
		p.check(p.coder.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/grpc"}))
		p.check(p.coder.WriteField(hpack.HeaderField{Name: "grpc-status", Value: "0"}))
		p.check(p.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: p.block.Bytes(), EndStream: true, EndHeaders: true}))
		if _, err := c.Receive(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		c.Again()
		if err := c.Ask("/a.B/C", metadata.Pairs("some", "thing", "other", "thing"), nil); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(until[*http2.MetaHeadersFrame](p).RegularFields()); !strings.Contains(got, `"other" = "thing"`) {
			t.Fatalf("headers %s", got)
		}
	}
}

package onecall

import (
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// No frame at all fits into one of 0 bytes: who takes that for its size never
// comes to the end of a message.
func TestInvalidSettings(t *testing.T) {
	c, p := meet(t, Options{}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	p.check(p.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 0}))
	if b, err := c.Receive(); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "settings") {
		t.Errorf("got %v, %v", b, err)
	}
	if err := c.Send(make([]byte, 20)); err != nil || c.outgoing.maxFrame != minMaxFrame {
		t.Errorf("sending in frames of %d bytes: %v", c.outgoing.maxFrame, err)
	}
}

func TestLargeMessage(t *testing.T) {
	c, p := meet(t, Options{Window: 8 << 20})
	p.accept()
	want := strings.Repeat("0123456789", 400_000)
	message := framed(want)
	p.check(p.WriteData(1, false, message[:10]))
	for c.incoming.body == nil {
		if _, err := c.next(); err != nil {
			t.Fatal(err)
		}
	}
	if got := cap(*c.incoming.body); got > announced {
		t.Errorf("%d bytes for what was only announced", got)
	}
	go func() {
		for part := range slices.Chunk(message[10:], 16<<10) {
			if p.WriteData(1, false, part) != nil {
				return
			}
		}
	}()
	if got := receive(t, c); got != want {
		t.Errorf("got %d bytes, want %d, or others", len(got), len(want))
	}
}

// A server that takes nothing any more is found out by who sends: a ping would
// have to wait for that.
func TestBlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		defer ours.Close()
		c := &Conn{ctx: t.Context(), conn: ours, options: Options{Window: defaultWindow, Keepalive: time.Second}}
		c.outgoing = outgoing{opened: true, window: defaultWindow, connWindow: defaultWindow, maxFrame: minMaxFrame}
		begin := time.Now()
		if err := c.Send([]byte("x")); status.Code(err) != codes.Unavailable || time.Since(begin) != pingTimeout {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || c.cut.Load() == nil {
			t.Errorf("reading goes on: %v", err)
		}
	})
}

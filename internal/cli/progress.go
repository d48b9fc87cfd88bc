package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
)

// plainEvery is the time between two status lines where there is no terminal
// to redraw.
const plainEvery = 10 * time.Second

// progressView shows how an experiment gets on: on a terminal the status is one
// line, redrawn; elsewhere it is a plain line now and then.
type progressView struct {
	out      io.Writer
	terminal *os.File // nil where out is none

	mu    sync.Mutex
	drawn bool      // a status line stands on the terminal
	last  time.Time // last plain status line
	phase string    // and its phase
}

func newProgress(out io.Writer) *progressView {
	v := &progressView{out: out}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		v.terminal = f
	}
	return v
}

// say prints one line above the status. It may be what a server of a cluster answered.
func (v *progressView) say(msg string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	fmt.Fprintln(v.out, output.Plain(msg))
}

// status shows how far the run is.
func (v *progressView) status(s run.Status) { v.show(s.Phase, statusLine(s)) }

// show replaces the status line, which is plain ASCII. Where there is no
// terminal a new phase is shown at once.
func (v *progressView) show(phase, line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.terminal == nil {
		if time.Since(v.last) < plainEvery && phase == v.phase {
			return
		}
		v.last, v.phase = time.Now(), phase
		fmt.Fprintln(v.out, line)
		return
	}
	if width, _, err := term.GetSize(int(v.terminal.Fd())); err == nil && width > 1 && len(line) >= width {
		line = line[:width-1] // a line that wraps cannot be redrawn
	}
	v.erase()
	fmt.Fprint(v.out, line)
	v.drawn = true
}

// close leaves the terminal with an empty line.
func (v *progressView) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
}

// erase clears the status line. The caller holds mu.
func (v *progressView) erase() {
	if v.drawn {
		fmt.Fprint(v.out, "\r\x1b[K")
		v.drawn = false
	}
}

// statusLine is plain ASCII, so that its length is its width.
func statusLine(s run.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %s", s.Phase, s.Elapsed.Round(time.Second))
	if s.Length > 0 {
		fmt.Fprintf(&b, "/%s", s.Length)
	}
	fmt.Fprintf(&b, " | pods %d/%d created, %d ready", s.Created, s.Pods, s.Ready)
	if s.NodeProxy == "" {
		fmt.Fprintf(&b, " | sidecars %d connected, %d complete, %d converged", s.Connected, s.Complete, s.Converged)
	} else {
		fmt.Fprintf(&b, " | %ss %d connected | proxies of %d pods connected, of %d complete, of %d converged", s.NodeProxy, s.Nodes, s.Connected, s.Complete, s.Converged)
	}
	fmt.Fprintf(&b, " | control plane %.2f cores, %s", s.Cores, output.Bytes(s.MemoryBytes))
	return b.String()
}

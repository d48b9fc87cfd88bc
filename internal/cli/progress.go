package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
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
	rows  bool      // the last line is a row of a table
	at    series.Position
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
	v.rows = false
	fmt.Fprintln(v.out, output.Plain(msg))
}

// row prints the row of a run that ended above the status, with the head of its table unless another row is right above it.
func (v *progressView) row(name string, ended *record.Run) {
	head, row := report.RunRow(name, ended)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	if !v.rows {
		fmt.Fprintln(v.out, head)
	}
	fmt.Fprintln(v.out, row)
	v.rows = true
}

// begun takes that a run of several begins.
func (v *progressView) begun(at series.Position) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at = at
}

// status shows how far the run is.
func (v *progressView) status(s run.Status) {
	v.mu.Lock()
	at := v.at
	v.mu.Unlock()
	v.show(s.Phase, statusLines(s, at)...)
}

// show replaces the status line, which is plain ASCII, by the first of these that fits. Where there is no
// terminal the first one is printed now and then, and at once in a new phase.
func (v *progressView) show(phase string, lines ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.terminal == nil {
		if time.Since(v.last) < plainEvery && phase == v.phase {
			return
		}
		v.last, v.phase, v.rows = time.Now(), phase, false
		fmt.Fprintln(v.out, lines[0])
		return
	}
	line := lines[0]
	if width, _, err := term.GetSize(int(v.terminal.Fd())); err == nil && width > 1 {
		line = fitting(lines, width-1) // a line that wraps cannot be redrawn
	}
	v.erase()
	fmt.Fprint(v.out, line)
	v.drawn = true
}

// fitting returns the first line that is not longer than this or, if all are, the beginning of the last one.
func fitting(lines []string, width int) string {
	for _, line := range lines {
		if len(line) <= width {
			return line
		}
	}
	return lines[len(lines)-1][:width]
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

// statusLines describe how far a run is, from the longest to the shortest line. They are plain ASCII, so that their
// length is their width.
func statusLines(s run.Status, at series.Position) []string {
	join := func(parts ...string) string {
		return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " | ")
	}
	long, short := phaseText(s), s.Phase
	if n := at.Number; at.Runs > 1 {
		most := ""
		if at.AtMost {
			most = "at most "
		}
		long, short = fmt.Sprintf("run %d of %s%d | %s", n, most, at.Runs, long), fmt.Sprintf("run %d | %s", n, short)
	}
	left, all := leftText(s, at)
	longLeft := left + all
	if s.Slowdown > 1 {
		longLeft = strings.Replace(longLeft, " left", " of real time left", 1)
	}
	if s.Pods == 0 {
		return []string{join(long, longLeft), join(short, left), s.Phase}
	}
	controlPlane := ""
	if s.MemoryBytes > 0 {
		controlPlane = fmt.Sprintf("control plane %.2f cores, %s", s.Cores, output.Bytes(s.MemoryBytes))
	}
	proxies := fmt.Sprintf("sidecars %d connected, %d complete, %d converged", s.Connected, s.Complete, s.Converged)
	if s.NodeProxy != "" {
		proxies = fmt.Sprintf("%ss %d connected | proxies of %d pods connected, of %d complete, of %d converged", s.NodeProxy, s.Nodes, s.Connected, s.Complete, s.Converged)
	}
	pods := fmt.Sprintf("%d/%d pods", s.Ready, s.Pods)
	return []string{
		join(long, longLeft, fmt.Sprintf("pods %d/%d created, %d ready", s.Created, s.Pods, s.Ready), proxies, controlPlane),
		join(long, longLeft, pods+" ready", fmt.Sprintf("%d converged", s.Converged), controlPlane),
		join(long, longLeft, pods+" ready", fmt.Sprintf("%d converged", s.Converged)),
		join(long, longLeft, pods+" ready"),
		join(long, left, pods),
		join(short, left, pods),
		join(s.Phase, left, pods),
		join(s.Phase, left),
	}
}

// phaseText states the phase and how long it has been going on. Where time is slowed down, first that of the modelled machine.
func phaseText(s run.Status) string {
	elapsed := func(k float64) string {
		of := func(d time.Duration) string { return time.Duration(float64(d) / k).Round(time.Second).String() }
		if s.Length > 0 {
			return of(s.Elapsed) + "/" + of(s.Length)
		}
		return of(s.Elapsed)
	}
	if s.Slowdown > 1 {
		return fmt.Sprintf("%s %s modelled, %s real", s.Phase, elapsed(s.Slowdown), elapsed(1))
	}
	return s.Phase + " " + elapsed(1)
}

// leftText states how long the run still takes, in real time, and all of several; "" where that is not known.
func leftText(s run.Status, at series.Position) (run, all string) {
	if s.Left == 0 {
		return "", ""
	}
	run = roundedUp(s.Left) + " left"
	if at.After > 0 {
		most := ""
		if at.AtMost {
			most = "at most "
		}
		all = fmt.Sprintf(", %s%s in all", most, roundedUp(s.Left+at.After))
	}
	return run, all
}

// roundedUp formats an estimated length of time, no finer than it is worth.
func roundedUp(d time.Duration) string {
	unit := 5 * time.Second
	switch {
	case d > 10*time.Minute:
		unit = time.Minute
	case d > time.Minute:
		unit = 10 * time.Second
	}
	text := (d + unit - 1).Truncate(unit).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

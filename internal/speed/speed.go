// Package speed measures how fast a processor of this machine does a fixed piece of work
// that resembles a control plane's: protobuf, maps, garbage collection, hashing, TLS
// handshakes. It defines the unit of processor time by which runs of different machines and
// days are compared.
//
// # The unit
//
// The reference processor is one that needs exactly [PassSeconds] of processor time for one
// pass of the work. A processor that needs half as much has the speed 2: what takes 1 s of
// its processor time takes 2 s of the reference processor's. The work has a version, [Work].
// Whoever changes what a pass does, or what it is compiled from, changes the version: speeds
// of different works are different units, and are never compared.
//
// The work is done in a process of its own, with one thread that runs Go code at a time and
// an empty heap, so that what scaler holds does not matter. Its processor time, not the time
// on a clock, is taken, as that of a control plane is. Like that, it grows where neighbours
// use caches and memory.
//
// A sample is a few passes, with a pause before the next one: a shared machine changes from one second to the next, and a control plane
// does not run without pauses either. [Measure] takes samples for some seconds, [Follow] while others run.
package speed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

// Command is the hidden command of scaler that does the work. Its arguments are the pause between two samples and the number of samples, 0 for
// no end; it prints the processor time of each in nanoseconds.
const Command = "speed"

// PassSeconds is the processor time of one pass on the reference processor. It was 5 ms in work 1. Pauses cost about 8 % (after a second 8, after
// 60 ms 5 %, on one AMD EPYC), so that speeds of both works are about the same with it.
const PassSeconds = 0.0054

const (
	passes   = 2  // of a sample
	warmUp   = 5  // passes that do not count
	parts    = 10 // of the samples, for their spread
	least    = 5  // samples for a speed, at the minimum
	samples  = 40 // of Measure
	pause    = 60 * time.Millisecond
	patience = 15 * time.Second // with the process of Measure
)

// Interval is the time between two samples of [Follow]: their passes need about 1 % of one processor.
const Interval = time.Second

// ErrOtherProgram reports that this program is not scaler, which cannot start itself for the
// work: one that uses its packages.
var ErrOtherProgram = errors.New("only the program scaler measures it")

// Sample is the processor time of a few passes.
type Sample struct {
	At  time.Time // when they were done
	CPU time.Duration
}

// Measure takes samples in a child process for about three seconds, and returns the speed.
// Nothing that is measured should run meanwhile.
func Measure(ctx context.Context) (record.Speed, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var all []Sample
	if err := sample(ctx, pause, samples, func(s Sample) { all = append(all, s) }); err != nil {
		return record.Speed{}, err
	}
	return Of(all)
}

// Follow takes a sample each interval in a child process, until ctx ends, and calls took with each, from one goroutine. The child has the
// priority of this process.
func Follow(ctx context.Context, took func(Sample)) error {
	err := sample(ctx, Interval, 0, took)
	if ctx.Err() != nil {
		return nil
	}
	return cmp.Or(err, errors.New("the process that measures the speed ended"))
}

// sample runs the child.
func sample(ctx context.Context, pause time.Duration, n int, took func(Sample)) error {
	info, ok := debug.ReadBuildInfo()
	if !ok || !strings.HasSuffix(info.Path, "/cmd/scaler") {
		return ErrOtherProgram
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding scaler's own program: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, Command, pause.String(), strconv.Itoa(n))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=100", "GOMEMLIMIT=off", "GODEBUG=")
	var stderr bytes.Buffer
	reader := &lines{took: took}
	cmd.Stdout, cmd.Stderr = reader, &stderr
	if err := process.Run(cmd); err != nil {
		return fmt.Errorf("running %s %s: %w %s", program, Command, errors.Join(context.Cause(ctx), reader.err, err), strings.TrimSpace(stderr.String()))
	}
	return nil
}

// lines reads samples from what the child prints.
type lines struct {
	took func(Sample)
	rest []byte // of a line whose end has not come
	err  error
}

func (l *lines) Write(text []byte) (int, error) {
	l.rest = append(l.rest, text...)
	for l.err == nil {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			break
		}
		l.rest = rest
		var ns int64
		if ns, l.err = strconv.ParseInt(string(line), 10, 64); l.err == nil {
			l.took(Sample{time.Now(), time.Duration(ns)})
		}
	}
	return len(text), l.err
}

// Do takes n samples in this process, without end if n is 0, with a pause before each, and prints them.
func Do(w io.Writer, pause time.Duration, n int) error { return do(w, pause, n, used) }

// do takes samples by what used reports of processor time. A sample has all that was used since the one before it, so that the collection of
// its garbage is in it or in the next.
func do(w io.Writer, pause time.Duration, n int, used func() (time.Duration, error)) error {
	work, err := newWork()
	if err != nil {
		return err
	}
	for range warmUp {
		if err := work.pass(); err != nil {
			return err
		}
	}
	last, err := used()
	if err != nil {
		return err
	}
	ticker := time.NewTicker(max(pause, time.Nanosecond))
	defer ticker.Stop()
	for i := 0; n == 0 || i < n; i++ {
		<-ticker.C
		for range passes {
			if err := work.pass(); err != nil {
				return err
			}
		}
		now, err := used()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w, int64(now-last)); err != nil {
			return err
		}
		last = now
	}
	return nil
}

// Of returns the speed by samples, five at least.
func Of(all []Sample) (record.Speed, error) {
	if len(all) < least {
		return record.Speed{}, fmt.Errorf("%d samples of the work, want %d", len(all), least)
	}
	s, parts := record.Speed{Work: Work}, min(parts, len(all))
	for i := range parts {
		part := all[i*len(all)/parts : (i+1)*len(all)/parts]
		var cpu time.Duration
		for _, p := range part {
			cpu += p.CPU
		}
		if cpu <= 0 {
			return record.Speed{}, errors.New("the clock of the processor time stood still")
		}
		s.CPUSeconds += cpu.Seconds()
		speed := float64(len(part)) * passes * PassSeconds / cpu.Seconds()
		if i == 0 || speed < s.Low {
			s.Low = speed
		}
		s.High = max(s.High, speed)
	}
	s.Speed = float64(len(all)) * passes * PassSeconds / s.CPUSeconds
	return s, nil
}

// used returns the processor time that this process has used.
func used() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return 0, fmt.Errorf("reading the processor time: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

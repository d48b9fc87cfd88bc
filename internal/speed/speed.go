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
package speed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

// Command is the hidden command of scaler that does the work and prints the speed as JSON.
const Command = "speed"

// PassSeconds is the processor time of one pass on the reference processor.
const PassSeconds = 0.005

const (
	enough   = 700 * time.Millisecond  // processor time of the work, warm-up excluded
	most     = 1200 * time.Millisecond // after which it ends all the same, once there are enough passes for each part
	warmUp   = 5                       // passes that do not count
	parts    = 10                      // of the work, for its spread
	patience = 10 * time.Second        // with the process of the work
)

// ErrOtherProgram reports that this program is not scaler, which cannot start itself for the
// work: one that uses its packages.
var ErrOtherProgram = errors.New("only the program scaler measures it")

// Measure does the work in a child process, which takes about a second, and returns the speed.
// Nothing that is measured should run meanwhile.
func Measure(ctx context.Context) (record.Speed, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok || !strings.HasSuffix(info.Path, "/cmd/scaler") {
		return record.Speed{}, ErrOtherProgram
	}
	program, err := os.Executable()
	if err != nil {
		return record.Speed{}, fmt.Errorf("finding scaler's own program: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, Command)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=100", "GOMEMLIMIT=off", "GODEBUG=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := process.Run(cmd); err != nil {
		return record.Speed{}, fmt.Errorf("running %s %s: %w %s", program, Command, errors.Join(context.Cause(ctx), err), strings.TrimSpace(stderr.String()))
	}
	var s record.Speed
	if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
		return record.Speed{}, fmt.Errorf("reading what %s %s printed: %w", program, Command, err)
	}
	return s, nil
}

// Do does the work in this process and writes the speed as JSON.
func Do(w io.Writer) error {
	s, err := do(most, used)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(s)
}

// do repeats passes until they used enough processor time, or for a length of time, and returns
// the speed by what used says of processor time.
func do(length time.Duration, used func() (time.Duration, error)) (record.Speed, error) {
	work, err := newWork()
	if err != nil {
		return record.Speed{}, err
	}
	for range warmUp {
		if err := work.pass(); err != nil {
			return record.Speed{}, err
		}
	}
	var passes []float64 // processor time of each, in seconds
	var all time.Duration
	for begin := time.Now(); len(passes) < parts || all < enough && time.Since(begin) < length; {
		before, err := used()
		if err != nil {
			return record.Speed{}, err
		}
		if err := work.pass(); err != nil {
			return record.Speed{}, err
		}
		after, err := used()
		if err != nil {
			return record.Speed{}, err
		}
		passes = append(passes, (after - before).Seconds())
		all += after - before
	}
	return speedOf(passes)
}

// speedOf is the speed by the processor times of passes.
func speedOf(passes []float64) (record.Speed, error) {
	if len(passes) < parts {
		return record.Speed{}, fmt.Errorf("%d passes of the work, want %d", len(passes), parts)
	}
	s := record.Speed{Work: Work}
	for i := range parts {
		part := passes[i*len(passes)/parts : (i+1)*len(passes)/parts]
		var seconds float64
		for _, p := range part {
			seconds += p
		}
		if seconds <= 0 {
			return record.Speed{}, errors.New("the clock of the processor time stood still")
		}
		s.CPUSeconds += seconds
		speed := float64(len(part)) * PassSeconds / seconds
		if i == 0 || speed < s.Low {
			s.Low = speed
		}
		s.High = max(s.High, speed)
	}
	s.Speed = float64(len(passes)) * PassSeconds / s.CPUSeconds
	return s, nil
}

// used is the processor time that this process has used.
func used() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		return 0, fmt.Errorf("reading the processor time: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// Package interrupt ends a program's work at a signal, and signals the clean-up that
// follows when it must hurry.
//
// The first signal ends a context. A second ctrl-C, SIGTERM or SIGQUIT also ends the
// contexts of [Uncancelled], which clean-up uses: what was asked to end is then killed.
// Callers decide what to stop, and how.
package interrupt

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Error is the cause of a context that a signal ended. It wraps
// context.Canceled.
type Error struct {
	Signal os.Signal
}

// Error names the signal in words.
func (e *Error) Error() string {
	switch e.Signal {
	case unix.SIGINT:
		return "interrupted by a signal (ctrl-C)"
	case unix.SIGPIPE:
		return "interrupted: what read its output has closed it"
	case unix.SIGHUP:
		return "interrupted: its terminal was closed (SIGHUP)"
	default:
		return fmt.Sprintf("interrupted by a signal (%s)", unix.SignalName(e.Signal.(unix.Signal)))
	}
}

// Unwrap returns context.Canceled.
func (e *Error) Unwrap() error { return context.Canceled }

// debounce is the time within which one interrupt may arrive twice, for example from a
// terminal and from a wrapper that forwards it. A person needs longer for a second one.
const debounce = 100 * time.Millisecond

// Options state what is done about signals.
type Options struct {
	// Outputs are the files that the program prints to. When one of them is a pipe that
	// nobody reads any more, that counts as a signal.
	Outputs []*os.File
	// Stopping is called at the first signal, Hurrying at the second, and GivingUp, which
	// may end the program, at the third.
	Stopping, Hurrying, GivingUp func(*Error)
}

// Notify returns a context that ends at the first of SIGINT, SIGTERM, SIGHUP and SIGQUIT,
// with an *Error as its cause. A signal that was ignored when the program started, as by
// nohup(1), stays ignored. stop ends the handling of signals.
func Notify(parent context.Context, opts Options) (ctx context.Context, stop func()) {
	hurry, hurryUp := context.WithCancelCause(context.WithoutCancel(parent))
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, hurryKey{}, hurry))
	signals, pipes := make(chan os.Signal, 8), make(chan os.Signal, 1)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	if !signal.Ignored(unix.SIGPIPE) {
		signal.Notify(pipes, unix.SIGPIPE)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		w := watch{opts: opts, cancel: cancel, hurry: hurryUp}
		for {
			select {
			case s := <-signals:
				w.take(s)
			case s := <-pipes:
				// SIGPIPE is also sent for a closed connection, which is no reason to
				// stop.
				if slices.ContainsFunc(opts.Outputs, broken) && w.count == 0 {
					w.take(s)
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(done)
		<-ended
		cancel(context.Canceled)
		hurryUp(context.Canceled)
	}
}

// watch is the state of Notify's goroutine.
type watch struct {
	opts          Options
	cancel, hurry context.CancelCauseFunc
	count         int
	last          time.Time
}

func (w *watch) take(s os.Signal) {
	now := time.Now()
	// A closed terminal may send it several times.
	again := w.count > 0
	if again && (s == unix.SIGHUP || now.Sub(w.last) < debounce) {
		return
	}
	w.count++
	w.last = now
	err := &Error{s}
	var say func(*Error)
	switch w.count {
	case 1:
		say = w.opts.Stopping
		w.cancel(err)
	case 2:
		say = w.opts.Hurrying
		w.hurry(err)
	default:
		say = w.opts.GivingUp
	}
	if say != nil {
		say(err)
	}
}

// broken reports whether a file is a pipe or a socket that nobody reads.
func broken(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLERR != 0
}

type hurryKey struct{}

// Uncancelled returns a context for cleaning up what was started: it continues when ctx
// ends, until the user asks to hurry.
func Uncancelled(ctx context.Context) context.Context {
	hurry, ok := ctx.Value(hurryKey{}).(context.Context)
	if !ok {
		return context.WithoutCancel(ctx)
	}
	return uncancelled{Context: hurry, values: ctx}
}

// uncancelled ends with one context and has the values of another.
type uncancelled struct {
	context.Context
	values context.Context
}

// Value asks the first context before the other, because the context package finds there
// what ended it.
func (u uncancelled) Value(key any) any {
	if value := u.Context.Value(key); value != nil {
		return value
	}
	return u.values.Value(key)
}

package interrupt_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/interrupt"
)

// send sends this process a signal.
func send(t *testing.T, s unix.Signal) {
	t.Helper()
	if err := unix.Kill(os.Getpid(), s); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s did not end", what)
	}
}

func TestTheFirstSignalEndsTheWorkAndTheSecondTheTakingDown(t *testing.T) {
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT) // one that comes when all is over must not end the tests
	stopping, hurrying := make(chan *interrupt.Error, 1), make(chan *interrupt.Error, 1)
	ctx, stop := interrupt.Notify(context.WithValue(t.Context(), "key", "value"), interrupt.Options{ //nolint:revive,staticcheck // a test's key
		Stopping: func(e *interrupt.Error) { stopping <- e },
		Hurrying: func(e *interrupt.Error) { hurrying <- e },
	})
	defer stop()
	down, cancel := context.WithTimeout(interrupt.Uncancelled(ctx), time.Hour)
	defer cancel()
	send(t, unix.SIGTERM)
	await(t, "the work", ctx.Done())
	var cause *interrupt.Error
	if err := context.Cause(ctx); !errors.As(err, &cause) || cause.Signal != unix.SIGTERM || !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is %v", err)
	}
	<-stopping
	if down.Err() != nil || context.Cause(interrupt.Uncancelled(ctx)) != nil {
		t.Fatal("taking down ended at the first signal")
	}
	if down.Value("key") != "value" {
		t.Error("the values are lost")
	}
	send(t, unix.SIGHUP) // as a terminal does that is closed
	for len(hurrying) == 0 && down.Err() == nil {
		send(t, unix.SIGINT) // may be taken for the same one at first
		select {
		case <-down.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	await(t, "taking down", down.Done())
	if err := context.Cause(down); !errors.As(err, &cause) || cause.Signal != unix.SIGINT {
		t.Errorf("the cause is %v", err)
	}
}

func TestWithoutNotifyTakingDownIsNotCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := interrupt.Uncancelled(ctx).Err(); err != nil {
		t.Error(err)
	}
}

func TestAPipeThatNobodyReadsIsASignal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, stop := interrupt.Notify(t.Context(), interrupt.Options{Outputs: []*os.File{w}})
	defer stop()
	send(t, unix.SIGPIPE) // of a connection
	for range 10 {
		if _, err := w.WriteString("x"); err != nil {
			t.Fatal(err)
		}
	}
	if ctx.Err() != nil {
		t.Fatal("a broken connection ended the work")
	}
	r.Close()
	for ctx.Err() == nil {
		if _, err := w.WriteString("x"); !errors.Is(err, unix.EPIPE) {
			t.Fatalf("writing: %v", err)
		}
		send(t, unix.SIGPIPE) // as the runtime does for standard output
	}
	var cause *interrupt.Error
	if !errors.As(context.Cause(ctx), &cause) || cause.Signal != unix.SIGPIPE {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}

// What was ignored when the program started, stays ignored.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	if os.Getenv("INTERRUPT_TEST_IGNORED") != "" {
		ctx, stop := interrupt.Notify(t.Context(), interrupt.Options{})
		defer stop()
		if !signal.Ignored(unix.SIGHUP) {
			t.Error("SIGHUP is not ignored any more")
		}
		send(t, unix.SIGHUP)
		send(t, unix.SIGTERM)
		<-ctx.Done()
		var cause *interrupt.Error
		if !errors.As(context.Cause(ctx), &cause) || cause.Signal != unix.SIGTERM {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		return
	}
	cmd := exec.Command("/bin/sh", "-c", `trap '' HUP; exec "$@"`, "sh", os.Args[0], "-test.run", "TestIgnoredSignalsStayIgnored", "-test.v")
	cmd.Env = append(os.Environ(), "INTERRUPT_TEST_IGNORED=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v:\n%s", err, out)
	}
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/steps"
)

// quick is the time within which a command may end after a signal without a message that it stops.
const quick = 150 * time.Millisecond

// notify returns the context of the whole program, which signals end: the first asks
// all to stop, the second kills what is still there, the third ends the program as
// it is.
func notify() (ctx context.Context, stop func()) {
	say := func(text string) { fmt.Fprintln(os.Stderr, "scaler:", text) }
	stopping := make(chan *time.Timer, 1)
	ctx, end := interrupt.Notify(context.Background(), interrupt.Options{
		Outputs: []*os.File{os.Stdout, os.Stderr},
		Stopping: func(e *interrupt.Error) {
			stopping <- time.AfterFunc(quick, func() {
				say(fmt.Sprintf("%v; stopping what was started, which can take up to %v; ctrl-C again kills it at once", e, steps.TeardownTime))
			})
		},
		Hurrying: func(*interrupt.Error) { say("killing what was started") },
		GivingUp: func(*interrupt.Error) {
			say("ended without waiting for what was started; 'scaler cleanup' removes what is left")
			os.Exit(exitInterrupted)
		},
	})
	return ctx, func() {
		end()
		select {
		case timer := <-stopping:
			timer.Stop()
		default:
		}
	}
}

// endsAtOnce makes a command that starts nothing, and so has nothing to stop, end
// at the first signal whatever it waits for. With one of the flags it starts something, and ends by itself.
func endsAtOnce(cmd *cobra.Command, unless ...string) *cobra.Command {
	do := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if slices.ContainsFunc(unless, cmd.Flags().Changed) {
			return do(cmd, args)
		}
		done := make(chan error, 1)
		go func() { done <- do(cmd, args) }()
		select {
		case err := <-done:
			return err
		case <-cmd.Context().Done():
			return context.Cause(cmd.Context()) // the program ends
		}
	}
	return cmd
}

// closedOutput reports whether an error is that nobody reads what was printed.
func closedOutput(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && errors.Is(path, syscall.EPIPE) && (path.Path == os.Stdout.Name() || path.Path == os.Stderr.Name())
}

// interruption states how an interrupted command ended. That all is stopped and saved it says only
// if no error says otherwise.
func interruption(err error) string {
	what := "interrupted"
	var cause *interrupt.Error
	if errors.As(err, &cause) {
		what = cause.Error()
	}
	rest := otherErrors(err)
	if len(rest) == 0 {
		return what + "; everything that was started is stopped"
	}
	var texts []string
	for _, err := range rest {
		texts = append(texts, err.Error())
	}
	return what + ", with errors; 'scaler cleanup' removes what is left:\n" + strings.Join(texts, "\n")
}

// otherErrors returns the errors that are not the interrupt itself: of taking down and of
// saving.
func otherErrors(err error) []error {
	if err == nil || closedOutput(err) {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, one := range joined.Unwrap() {
			rest = append(rest, otherErrors(one)...)
		}
		return rest
	}
	var down *steps.TeardownError
	switch inner := errors.Unwrap(err); {
	case errors.As(err, &down):
		return []error{err}
	case inner == nil && err == context.Canceled:
		return nil
	case inner == nil:
		return []error{err}
	case len(otherErrors(inner)) == 0:
		return nil
	}
	return []error{err}
}

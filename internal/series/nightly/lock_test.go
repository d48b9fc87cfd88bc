package nightly

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/record"
)

// A night removes nothing of one that is in progress in the same folder, and does not begin.
func TestNightInProgress(t *testing.T) {
	o := options(t)
	second := options(t)
	second.Ladder.Spec.Out = o.Ladder.Spec.Out
	second.Run = func(context.Context, run.Spec, run.Progress) (record.Run, error) {
		t.Error("the second night begins")
		return record.Run{}, nil
	}
	ran := o.Run
	begun := false
	o.Run = func(ctx context.Context, s run.Spec, p run.Progress) (record.Run, error) {
		run, err := ran(ctx, s, p)
		if begun {
			return run, err
		}
		begun = true
		run.Status, run.Finished = record.StatusInterrupted, nil
		write(t, run)
		if n, err := Run(ctx, second); n != nil || !errors.Is(err, ErrInProgress) {
			t.Errorf("the second night: %+v, %v, want %v", n, err, ErrInProgress)
		}
		return ran(ctx, s, p)
	}
	if _, err := Run(t.Context(), o); err != nil || !begun {
		t.Errorf("the first night: begun %v, %v", begun, err)
	}
	unlock, err := lock(o.Ladder.Spec.Out)
	if err != nil {
		t.Fatalf("after the night: %v", err)
	}
	unlock()
}

func TestWithoutLocks(t *testing.T) {
	err := refused("/reports", unix.ENOLCK)
	if errors.Is(err, ErrInProgress) || !errors.Is(err, unix.ENOLCK) || !strings.Contains(err.Error(), "that has flock(2)") {
		t.Errorf("%v, want that the file system has no locks", err)
	}
}

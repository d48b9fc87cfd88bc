package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/spf13/cobra"
)

// What a command has started is stopped before it ends; one that has started nothing ends at once.
func TestEndsAtOnce(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		stopped bool
	}{
		{"starts nothing", nil, false},
		{"starts something", []string{"--start"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			stopped, release := false, make(chan struct{})
			cmd := endsAtOnce(&cobra.Command{Use: "do", SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, _ []string) error {
				interrupt()
				if c.stopped {
					stopped = true
				} else {
					<-release // it would never end by itself
				}
				return cmd.Context().Err()
			}}, "start")
			defer close(release)
			cmd.Flags().Bool("start", false, "")
			cmd.SetArgs(c.args)
			if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
			if stopped != c.stopped {
				t.Errorf("what it started was stopped: %v, want %v", stopped, c.stopped)
			}
		})
	}
}

// A plan that is carried out is such a command.
func TestPlanThatIsVerifiedDoesNotEndAtOnce(t *testing.T) {
	plan, _, err := newRootCommand(streams{}).Find([]string{"plan"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	plan.SetContext(ctx)
	if err := plan.Flags().Set("verify", "true"); err != nil {
		t.Fatal(err)
	}
	// It is asked for what no plan can have, which it says whatever the context is.
	if err := plan.RunE(plan, nil); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v, want its own error", err)
	}
}

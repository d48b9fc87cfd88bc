// Package cli is the command line of scaler: a file for each command. A command reads
// flags, makes one call into another package and prints the result.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/series/limits"
)

// Exit codes, as docs/reference/exit-codes.md states them.
const (
	exitDone        = 0
	exitFailed      = 1   // environment, program or control plane
	exitUsage       = 2   // wrong usage or bad input; nothing was started
	exitMissed      = 3   // finished, but convergence or a stated bound was missed
	exitUndecided   = 4   // finished, but a stated bound is neither established as kept nor as missed
	exitInterrupted = 130 // interrupted by a signal or a closed output
)

// kubectlPlugin is the file name by which kubectl finds the plugin mesh-scaler.
const kubectlPlugin = "kubectl-mesh_scaler"

// Main runs the command that args name until it ends or a signal interrupts it, and returns
// the exit code of the process.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	klog.SetLogger(klog.Logger{}) // client-go also returns the errors that it logs, and logs an error for each request that scaler cancels
	ctx, stop := notify()
	defer stop()
	return exitCode(execute(ctx, args, stdin, stdout, stderr))
}

// streams are a command's input and output: data goes to out, progress and
// errors to err.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// execute is the program: it parses args, runs the command they name and prints
// its error, if any, as one line on stderr.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	s := streams{in: stdin, out: stdout, err: stderr}
	root := newRootCommand(s)
	root.SetArgs(args)
	if filepath.Base(os.Args[0]) == kubectlPlugin {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl mesh-scaler"}
	}
	cmd, err := root.ExecuteContextC(ctx)
	err = withFlag(cmd, err)
	switch {
	case err == nil:
	case exitCode(err) == exitInterrupted:
		fmt.Fprintln(stderr, "scaler:", output.Text(interruption(err)))
	default: // it may have the name of a folder in a record from elsewhere
		fmt.Fprintln(stderr, "scaler:", output.Text(err.Error()))
	}
	return err
}

func newRootCommand(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "scaler",
		Short: "Measure how a service mesh's control plane scales",
		Long: `scaler rolls out meshes of simulated sidecars against a real control plane and
measures what that costs: cores and memory during rollout and afterwards, and
the time until every sidecar has its configuration and its certificate.`,
		Example: `  # 200 pods against istiod, on a cluster of scaler's own
  scaler rollout --pods 200

  # what is missing on this machine, and the fix
  scaler doctor`,
		Version:       component.ScalerVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetVersionTemplate("scaler {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(showUsage)
	addGroup(root, "Measure", newRolloutCommand(s), newUpgradeCommand(s), newLatencyCommand(s), newLimitsCommand(s), newTuneCommand(s), newBenchCommand(s), newXDSCommand(s))
	addGroup(root, "Your own mesh", endsAtOnce(newCaptureCommand(s)), newDiffCommand(s), newAssessCommand(s))
	addGroup(root, "Records", endsAtOnce(newReportCommand(s)), endsAtOnce(newCompareCommand(s)), endsAtOnce(newPlanCommand(s), "verify"), newDashboardsCommand(s))
	addGroup(root, "This machine", endsAtOnce(newDoctorCommand(s)), newComponentsCommand(s), newClusterCommand(s), newCleanupCommand(s), newCalibrateCommand(s))
	root.AddCommand(
		endsAtOnce(newSchemaCommand(s)),
		endsAtOnce(newVersionCommand(s)),
		newReferenceCommand(),
		newExecEnvoyCommand(),
		newEchoCommand(),
		newLoadAgentCommand(),
		newCapLogsCommand(),
		newSpeedCommand(s),
		newWorkerCommand(s),
	)
	addHelpAndCompletion(root)
	if runtime.GOOS != "linux" {
		onlyRead(root, runtime.GOOS)
	}
	return root
}

// addGroup adds commands that the help lists below a title.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range commands {
		c.GroupID = title
	}
	root.AddCommand(commands...)
}

// errMissed marks a run that finished but did not converge: exit code 3.
var errMissed = errors.New("not converged")

// notConverged gives the error of a run that did not converge its exit code.
func notConverged(err error) error {
	if errors.Is(err, phases.ErrUnconverged) {
		return fmt.Errorf("%w: %w", errMissed, err)
	}
	return err
}

func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, context.Canceled), closedOutput(err):
		return exitInterrupted
	case errors.Is(err, errMissed) || errors.Is(err, errBound) || errors.Is(err, errUnfaithful) || errors.Is(err, errNotMet) || errors.Is(err, errNoGo) || errors.Is(err, errNotVerified):
		return exitMissed
	case errors.Is(err, errUndecided) || errors.Is(err, errCannotTell) || errors.Is(err, errSweepUndecided) || errors.Is(err, limits.ErrUndecided):
		return exitUndecided
	default:
		return exitFailed
	}
}

// stateDir returns the folder that holds the embedded clusters of this user.
func stateDir() (string, error) {
	dir, err := place.StateDir()
	if err != nil && os.Getenv("XDG_STATE_HOME") != "" {
		return "", usageError{err}
	}
	return dir, err
}

// progress prints one line on stderr; it is what long operations take.
func progress(s streams) func(string) {
	return func(msg string) { fmt.Fprintln(s.err, msg) }
}

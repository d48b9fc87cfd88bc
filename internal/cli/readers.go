package cli

import (
	"github.com/spf13/cobra"
)

// readers are the commands that start no program, by name, and whether one does with these flags and arguments. They
// are all that scaler has on systems other than Linux.
var readers = map[string]func(cmd *cobra.Command, args []string) bool{
	"compare":    reads,
	"completion": reads,
	"diff": func(cmd *cobra.Command, args []string) bool {
		return len(args) > 0 && !cmd.Flags().Changed("validate-with")
	},
	"plan":    func(cmd *cobra.Command, _ []string) bool { return !cmd.Flags().Changed("verify") },
	"report":  reads,
	"schema":  reads,
	"version": reads,
}

func reads(*cobra.Command, []string) bool { return true }

// onlyRead makes commands refuse where they would start programs, which a system other than Linux does not run, and
// hides those that always would.
func onlyRead(root *cobra.Command, system string) {
	root.Long = `This is scaler for ` + system + `, which reads the records of runs. Runs need scaler for Linux.`
	root.Example = `  # the records below results, on another machine or in continuous integration
  scaler report results`
	for _, cmd := range root.Commands() {
		only := readers[cmd.Name()]
		cmd.Hidden = cmd.Hidden || only == nil
		refuse(cmd, system, only)
	}
}

// refuse makes a command, and those below it, refuse unless it only reads.
func refuse(cmd *cobra.Command, system string, only func(*cobra.Command, []string) bool) {
	for _, below := range cmd.Commands() {
		refuse(below, system, only)
	}
	if cmd.RunE == nil {
		return
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if only == nil || !only(cmd, args) {
			return usagef("%s: it starts programs, and this is scaler for %s, which reads records: want scaler for Linux", cmd.CommandPath(), system)
		}
		return run(cmd, args)
	}
}

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/pkg/scenario"
)

// scenarioFlags are the flags of a command that makes runs from a scenario: all but the first
// few are made from the table of parameters.
type scenarioFlags struct {
	command  string
	defaults scenario.Scenario
	preset   string
	file     string
	sets     []string
	print    string
	stdin    io.Reader
	notes    map[string]string // that the help of parameters ends with, by path
}

// addTo adds the flags. defaults is the scenario of the command without flags.
func (o *scenarioFlags) addTo(cmd *cobra.Command, s streams, command string, defaults scenario.Scenario) {
	o.command, o.defaults, o.stdin = command, defaults, s.in
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "scenario `FILE` in YAML; - is standard input. Flags replace its values")
	f.StringVar(&o.preset, "preset", "", "scenario that is part of scaler, before --file: "+oneOf(scenario.PresetNames(command)))
	f.StringArrayVar(&o.sets, "set", nil, "`PATH=VALUE` of a field of the scenario, as in "+o.example()+", repeatable")
	f.StringVar(&o.print, "print-scenario", "", "print the scenario and do nothing else: given (the fields that were stated) or all (with defaults)")
	f.Lookup("print-scenario").NoOptDefVal = "given"
	group(f, scenarioGroup, true, "file", "preset", "set", "print-scenario")
	complete(cmd, "preset", scenario.PresetNames(command))
	complete(cmd, "print-scenario", []string{"given", "all"})
	_ = cmd.RegisterFlagCompletionFunc("set", func(_ *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		return o.completeSet(text)
	})
	for _, p := range scenario.For(command) {
		for i, name := range p.Flags(command) {
			flag := f.VarPF(&texts{kind: p.Type(), want: p.Wanted()}, name, "", o.usage(p))
			if p.Type() == "bool" {
				flag.NoOptDefVal = "true"
			}
			annotate(flag, string(p.Group), p.Basic && i == 0)
			if len(p.Choices) > 0 {
				complete(cmd, name, p.Choices)
			}
		}
	}
	if mesh := f.Lookup("mesh"); mesh != nil {
		mesh.Usage += "; samples are " + strings.Join(capture.Samples(), ", ")
		_ = cmd.RegisterFlagCompletionFunc("mesh", cobra.FixedCompletions(capture.Samples(), cobra.ShellCompDirectiveDefault)) // and files
	}
}

// example returns a field of the command and its value.
func (o *scenarioFlags) example() string {
	if o.command == scenario.Latency {
		return "latency.rps=100"
	}
	return "mesh.parts.zones=3"
}

// usage returns the help of a parameter's flag.
func (o *scenarioFlags) usage(p scenario.Parameter) string {
	text := p.Usage(o.command) + o.notes[p.Path]
	value, _ := o.defaults.Text(p.Path)
	switch {
	case value == "false":
	case value != "":
		text += " (default " + value + ")"
	case p.Default != "":
		text += " (default " + p.Default + ")"
	}
	return text
}

// completeSet completes the path and the value of --set.
func (o *scenarioFlags) completeSet(text string) ([]string, cobra.ShellCompDirective) {
	path, _, value := strings.Cut(text, "=")
	var all []string
	for _, p := range scenario.For(o.command) {
		switch {
		case !value:
			all = append(all, p.Path+"="+"\t"+p.Help)
		case p.Path == path:
			for _, choice := range p.Choices {
				all = append(all, path+"="+choice)
			}
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// read makes the document of the flags, layer by layer, and checks it as far as the table of
// parameters goes. changes set what the command states itself, before the check.
func (o *scenarioFlags) read(f *pflag.FlagSet, changes ...func(*scenario.Document) error) (*scenario.Document, error) {
	d := scenario.New(o.defaults)
	if f.Changed("preset") {
		if err := d.ReadPreset(o.command, o.preset); err != nil {
			return nil, usagef("--preset: %w", err)
		}
	}
	if f.Changed("file") {
		if err := o.readFile(d); err != nil {
			return nil, usageError{err}
		}
	}
	for _, set := range o.sets {
		path, value, ok := strings.Cut(set, "=")
		if !ok {
			return nil, usagef("--set: got %q, want PATH=VALUE, as in %s", set, o.example())
		}
		if err := d.Set(path, value, ""); err != nil {
			return nil, usagef("--set: %w", err)
		}
	}
	for _, p := range scenario.For(o.command) {
		for _, name := range p.Flags(o.command) {
			flag := f.Lookup(name)
			if !flag.Changed {
				continue
			}
			for _, text := range flag.Value.(*texts).given {
				if err := d.Set(p.Path, text, "--"+name); err != nil {
					return nil, usagef("--%s: %w", name, err)
				}
			}
		}
	}
	for _, change := range changes {
		if err := change(d); err != nil {
			return nil, usageError{err}
		}
	}
	if err := d.Check(o.command); err != nil {
		return nil, usageError{err}
	}
	return d, nil
}

// readFile reads the scenario of --file.
func (o *scenarioFlags) readFile(d *scenario.Document) error {
	if o.file == "-" {
		return d.Read("standard input", o.stdin)
	}
	info, err := os.Stat(o.file)
	switch {
	case err != nil:
		return fmt.Errorf("--file: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("--file: got %q, want a regular file, or - for standard input", o.file)
	}
	file, err := os.Open(o.file)
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	defer file.Close()
	return d.Read(o.file, file)
}

// withFlag puts the flag of a command in front of an error of a field, which names the field alone,
// unless it has one. A field of a scenario has its flag if that was given; any other field is what its
// flag states, and the flag takes its place. It is applied once, to what a command returns.
func withFlag(cmd *cobra.Command, err error) error {
	field, ok := errors.AsType[*scenario.Error](err)
	if !ok || strings.HasPrefix(err.Error(), "--") {
		return err
	}
	if p, ok := scenario.Of(field.Path); ok {
		for _, name := range p.Flags(cmd.Name()) {
			if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
				return fmt.Errorf("--%s: %w", name, err)
			}
		}
		return err
	}
	if name := cmp.Or(otherFlags[field.Path], flagOf(field.Path)); cmd.Flags().Lookup(name) != nil && err.Error() == field.Error() {
		plain := *field
		plain.Path = ""
		if _, usage := errors.AsType[usageError](err); usage {
			return usagef("--%s: %w", name, &plain)
		}
		return fmt.Errorf("--%s: %w", name, &plain)
	}
	return err
}

// otherFlags are the flags of fields of options whose names do not follow from those of the fields.
var otherFlags = map[string]string{"objective": "slo", "bounds": "fail-on"}

// flagOf returns the flag that a field of options has, as in tls-ca of tlsCA.
func flagOf(field string) string {
	var b strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 && !unicode.IsUpper(rune(field[i-1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// misused makes wrong usage of an error of a field: nothing was created before it.
func misused(err error) error {
	if _, ok := errors.AsType[*scenario.Error](err); ok {
		return usageError{err}
	}
	return err
}

// printed prints the document if that is asked for.
func (o *scenarioFlags) printed(s streams, f *pflag.FlagSet, d *scenario.Document) (done bool, err error) {
	if !f.Changed("print-scenario") {
		return false, nil
	}
	if err := parseOneOf("print-scenario", o.print, []string{"given", "all"}); err != nil {
		return true, err
	}
	text, err := d.YAML(o.command, o.print == "all")
	if err != nil {
		return true, err
	}
	_, err = s.out.Write(text)
	return true, err
}

// texts is the value of a flag of a parameter: what was given, as it was given.
type texts struct {
	given []string
	kind  string
	want  string // what a value is, for errors
}

// Set is part of pflag.Value.
func (t *texts) Set(text string) error {
	t.given = append(t.given, text)
	return nil
}

// String is part of pflag.Value.
func (t *texts) String() string { return strings.Join(t.given, ",") }

// Type is part of pflag.Value.
func (t *texts) Type() string { return t.kind }

// completeFolders completes arguments that are folders.
var completeFolders = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

// complete completes a flag with one of a few values.
func complete(cmd *cobra.Command, flag string, values []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// Annotations of flags for help.
const (
	groupAnnotation = "scaler_group"
	basicAnnotation = "scaler_basic"
	// scenarioGroup are the flags that name a scenario.
	scenarioGroup scenario.Group = "Scenario"
)

// annotate puts a flag into a group of the help.
func annotate(flag *pflag.Flag, group string, basic bool) {
	if flag.Annotations == nil {
		flag.Annotations = map[string][]string{}
	}
	flag.Annotations[groupAnnotation] = []string{group}
	if basic {
		flag.Annotations[basicAnnotation] = nil
	}
}

// group puts flags into a group of the help.
func group(f *pflag.FlagSet, of scenario.Group, basic bool, names ...string) {
	for _, name := range names {
		if flag := f.Lookup(name); flag != nil {
			annotate(flag, string(of), basic)
		}
	}
}

// grouped returns the flags of a command by group, without those that help leaves out.
func grouped(f *pflag.FlagSet, all bool) (groups []string, flags map[string]*pflag.FlagSet, left int) {
	flags = map[string]*pflag.FlagSet{}
	f.VisitAll(func(flag *pflag.Flag) {
		name := ""
		if group := flag.Annotations[groupAnnotation]; len(group) > 0 {
			name = group[0]
		}
		_, basic := flag.Annotations[basicAnnotation]
		switch {
		case flag.Hidden:
			return
		case name != "" && !basic && !all:
			left++
			return
		}
		if flags[name] == nil {
			flags[name] = pflag.NewFlagSet(name, pflag.ContinueOnError)
			flags[name].SortFlags = false
		}
		flags[name].AddFlag(flag)
	})
	for _, g := range append([]scenario.Group{scenarioGroup}, scenario.Groups...) {
		if flags[string(g)] != nil {
			groups = append(groups, string(g))
		}
	}
	if flags[""] != nil {
		groups = append(groups, "")
	}
	return groups, flags, left
}

// showUsage prints the usage of a command: as cobra does but for flags, which are in groups, and
// of which the short help has the basic ones.
func showUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	others := "Commands"
	if len(cmd.Groups()) > 0 {
		others = "Other"
	}
	for _, g := range append(slices.Clone(cmd.Groups()), &cobra.Group{Title: others}) {
		title := "\n" + g.Title + ":\n"
		for _, c := range cmd.Commands() {
			if c.GroupID == g.ID && (c.IsAvailableCommand() || c.Name() == "help") {
				fmt.Fprintf(&b, "%s  %-*s %s\n", title, c.NamePadding(), c.Name(), c.Short)
				title = ""
			}
		}
	}
	helpAll := cmd.Flags().Lookup(helpAllFlag)
	groups, flags, left := grouped(cmd.LocalFlags(), helpAll == nil || helpAll.Changed)
	for _, name := range groups {
		title := "Flags"
		if name != "" {
			title = name
		}
		fmt.Fprintf(&b, "\n%s:\n%s", title, flags[name].FlagUsagesWrapped(120))
	}
	if inherited := cmd.InheritedFlags(); inherited.HasAvailableFlags() {
		fmt.Fprintf(&b, "\nGlobal Flags:\n%s", inherited.FlagUsagesWrapped(120))
	}
	if left > 0 {
		fmt.Fprintf(&b, "\n'%s --%s' lists %d more flags, and 'scaler schema' all fields of a scenario.\n", cmd.CommandPath(), helpAllFlag, left)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s [command] --help\" for more information about a command.\n", cmd.CommandPath())
	}
	_, err := io.WriteString(cmd.OutOrStderr(), b.String())
	return err
}

// helpAllFlag is the flag that shows all flags of a command that has many.
const helpAllFlag = "help-all"

// addHelpAll adds the flag that shows all flags.
func addHelpAll(cmd *cobra.Command) {
	cmd.Flags().Bool(helpAllFlag, false, "help with all flags")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed(helpAllFlag) {
			return cmd.Help()
		}
		return run(cmd, args)
	}
}

func newSchemaCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of scenario files",
		Long: `Schema prints the JSON Schema (draft 2020-12) of scenario files, by which an editor
completes and checks them. It describes every field.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := scenario.Schema()
			if err != nil {
				return err
			}
			_, err = s.out.Write(text)
			return err
		},
	}
}

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is an error in what the user asked for: exit code 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usagef makes an error that ends the program with exit code 2. It must be
// returned before anything is started or created.
func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// flagError puts an error of the flags' parser into scaler's words: flag,
// value, and what is wanted.
func flagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		return usagef("--%s: got %q, want %s", flag.Name, invalid.GetValue(), wanted(flag, invalid.Unwrap()))
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		flag := missing.GetFlag()
		return usagef("--%s: no value, want %s", flag.Name, wanted(flag, nil))
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if similar := similarTo(unknown.GetSpecifiedName(), names); len(similar) > 0 {
			return usagef("%w: did you mean --%s? see '%s --help'", err, strings.Join(similar, " or --"), cmd.CommandPath())
		}
	}
	return usagef("%w; see '%s --help'", err, cmd.CommandPath())
}

// similarTo returns the names that a mistyped one may mean: cobra's suggestions of
// commands, at most one letter away, since short names two letters apart are alike by
// chance; none of a single letter.
func similarTo(typed string, names []string) []string {
	if len(typed) < 2 {
		return nil
	}
	known := &cobra.Command{SuggestionsMinimumDistance: 1}
	for _, name := range names {
		known.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return known.SuggestionsFor(typed)
}

// wanted states what values a flag takes, given what was wrong with one.
func wanted(flag *pflag.Flag, cause error) string {
	if parameter, ok := flag.Value.(*texts); ok {
		return parameter.want
	}
	switch kind := flag.Value.Type(); {
	case errors.Is(cause, strconv.ErrRange):
		return "a number of 64 bits at most"
	case kind == "int":
		return "a whole number"
	case kind == "float64":
		return "a number"
	case kind == "intSlice":
		return "whole numbers, as in 100,1000"
	case kind == "stringToString":
		return "NAME=VALUE"
	case kind == "uint64":
		return "a whole number, 0 or more"
	case kind == "duration":
		return "a duration, as in 90s or 15m"
	case kind == "bool":
		return "true or false"
	case cause == nil:
		return "a " + kind
	default:
		return cause.Error()
	}
}

// noArgs is the check of commands that take no arguments, but may have
// subcommands.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	commands := commandNames(cmd)
	if len(commands) == 0 {
		return usagef("argument %q: want none; see '%s --help'", args[0], cmd.CommandPath())
	}
	if similar := similarTo(args[0], commands); len(similar) > 0 {
		return usagef("command %q: did you mean %s? see '%s --help'", args[0], oneOf(similar), cmd.CommandPath())
	}
	return usagef("command %q: want %s; see '%s --help'", args[0], oneOf(commands), cmd.CommandPath())
}

// commandNames returns the names of a command's subcommands.
func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// refuseFlags returns an error for the first of these flags that is given. want states what the flags need.
func refuseFlags(f *pflag.FlagSet, want string, names ...string) error {
	for _, name := range names {
		if flag := f.Lookup(name); flag.Changed {
			return usagef("--%s: got %q, want %s", name, flag.Value, want)
		}
	}
	return nil
}

// checkEarlier checks the command line of a command that answers from the records of an earlier command. It accepts one
// folder and only the flags in flags. done is a participle for the error, such as "compared".
func checkEarlier(f *pflag.FlagSet, args []string, earlier, done string, flags ...string) error {
	if len(args) > 1 {
		return usagef("want one DIR, the --out of an earlier %s, not %d", earlier, len(args))
	}
	var err error
	f.Visit(func(flag *pflag.Flag) {
		if !slices.Contains(flags, flag.Name) {
			err = usagef("--%s: want none with DIR, whose records are %s as they are", flag.Name, done)
		}
	})
	return err
}

// parseOutput checks the value of -o.
func parseOutput(value string, allowed ...string) error { return parseOneOf("output", value, allowed) }

// parseOneOf checks a flag that takes one of a few values.
func parseOneOf(flag, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return usagef("--%s: got %q, want %s", flag, value, oneOf(allowed))
}

// oneOf lists alternatives as a sentence does.
func oneOf(all []string) string {
	last := len(all) - 1
	if last < 1 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

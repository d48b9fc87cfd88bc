package cli

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
)

// References of scenarios, which hack/update-docs.sh writes.
const (
	scenarioPage   = "../../docs/reference/scenario.md"
	scenarioSchema = "../../docs/reference/scenario.schema.json"
)

// TestScenarioReference compares the committed reference of scenarios with the table of parameters.
func TestScenarioReference(t *testing.T) {
	schema, err := scenario.Schema()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]byte{scenarioPage: scenarioReference(t), scenarioSchema: schema} {
		if *updateDocs {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from the table of parameters (%v): run hack/update-docs.sh", path, err)
		}
	}
}

// scenarioCommands are the commands that make runs from a scenario.
var scenarioCommands = append(slices.Clone(scenario.Rolling), scenario.Latency)

// scenarioReference returns the page of all parameters.
func scenarioReference(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Scenario

A scenario states all that is asked of a run. `+"`scaler rollout`, `bench`, `upgrade`, `limits`, `tune`, `diff`, `assess` and `latency`"+` make one from, in this order,
their defaults, `+"`--preset NAME`"+` (%s; of latency %s), `+"`-f FILE`"+` and the flags; what comes later replaces single fields of what comes earlier.
`+"`--set PATH=VALUE`"+` sets any field, also one without a flag. `+"`--print-scenario`"+` prints what was given, and `+"`--print-scenario=all`"+` all
fields, as a file for `+"`-f`"+`. [scenario.schema.json](scenario.schema.json), which `+"`scaler schema`"+` prints, has an editor complete and check files.

`+"```yaml"+`
apiVersion: %s
kind: %s
mesh:
  pods: [200, 400]   # one run for each
  mode: strict
  parts:
    zones: 3
load:
  changes: 5/s:route
`+"```"+`

The file is YAML or JSON. Unknown and repeated keys, anchors and values of another type are refused with their line.
A field of a list takes a single value or several; `+"`--set`"+` separates them with commas, or is given several times for texts.

Columns: *applies* states where a field may be given; *commands* are those that have it, if
they are not all that roll out a mesh, which are all but latency; *compared* is what it means that
two runs differ in it:

| compared | meaning |
| --- | --- |
`, strings.Join(scenario.PresetNames(scenario.Rollout), ", "), strings.Join(scenario.PresetNames(scenario.Latency), ", "), scenario.APIVersion, scenario.Kind)
	for _, kind := range []struct {
		name    scenario.Comparability
		meaning string
	}{
		{scenario.Irrelevant, "changes no figure"},
		{scenario.Size, "what a forecast is made over; equal where runs are compared"},
		{scenario.Repeat, "tells runs apart that are alike"},
		{scenario.Condition, "equal where runs are compared, planned from or summarized"},
		{scenario.Subject, "what a comparison is about: differs between its sides only"},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", kind.name, kind.meaning)
	}
	written := 0
	for _, group := range scenario.Groups {
		first := true
		for _, p := range scenario.Parameters {
			if p.Group != group {
				continue
			}
			if first {
				fmt.Fprintf(&b, "\n## %s\n\n| field | flag | type | default | values | applies | commands | compared | meaning |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", group)
				first = false
			}
			defaults := scenario.Default()
			if !slices.ContainsFunc(scenario.Rolling, p.AppliesTo) {
				defaults = scenario.DefaultLatency()
			}
			value, ok := defaults.Text(p.Path)
			if !ok {
				t.Errorf("%s is no field of a scenario", p.Path)
			}
			if value == "" {
				value = p.Default
			} else {
				value = code(value)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", code(p.Path), parameterFlags(p), cell(p.Type()), cell(value),
				cell(p.Values()), cell(string(p.Where)), strings.Join(p.Commands, ", "), p.Compared, cell(meaning(p)))
			written++
		}
	}
	if written != len(scenario.Parameters) {
		t.Errorf("%d of %d parameters have a group", written, len(scenario.Parameters))
	}
	return b.Bytes()
}

// parameterFlags returns all flags of a parameter. A flag that only one command has is followed by that command.
func parameterFlags(p scenario.Parameter) string {
	var all []string
	for _, name := range []string{p.Flag, p.Alias} {
		if name != "" {
			all = append(all, code("--"+name))
		}
	}
	for _, command := range scenarioCommands {
		if name := p.FlagOf[command]; name != "" {
			all = append(all, code("--"+name)+" of "+command)
		}
	}
	return strings.Join(all, ", ")
}

// meaning returns the help of a parameter, and that of commands which have another one.
func meaning(p scenario.Parameter) string {
	text := p.Help
	if p.Several != "" {
		text += "; " + p.Several
	}
	for _, command := range scenarioCommands {
		if of := p.HelpOf[command]; of != "" {
			text += "; with " + command + ": " + of
		}
	}
	return text
}

func code(text string) string { return "`" + text + "`" }

// cell escapes a text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

package hack

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/component"
)

// The action's steps are scripts of bash that refer to inputs and outputs that there are, and build programs that scaler has.
func TestAction(t *testing.T) {
	text, err := os.ReadFile("action/action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]any
		Runs   struct {
			Using string
			Steps []struct{ ID, Shell, Uses, Run string }
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	if action.Runs.Using != "composite" || len(action.Runs.Steps) == 0 {
		t.Fatalf("the action has %+v, want steps of a composite action", action.Runs)
	}
	outputs := map[string]bool{}
	var built []string
	for _, step := range action.Runs.Steps {
		if step.Uses != "" {
			continue
		}
		check := exec.Command("bash", "-n")
		check.Stdin = strings.NewReader(step.Run)
		if said, err := check.CombinedOutput(); err != nil || step.Shell != "bash" {
			t.Errorf("shell %q, %v: %s\n%s", step.Shell, err, said, step.Run)
		}
		for _, output := range regexp.MustCompile(`echo "(\w+)=.*" >>"\$GITHUB_OUTPUT"`).FindAllStringSubmatch(step.Run, -1) {
			outputs[step.ID+".outputs."+output[1]] = true
		}
		for _, line := range regexp.MustCompile(`components build ([a-z -]*[a-z])`).FindAllStringSubmatch(step.Run, -1) {
			built = append(built, strings.Fields(line[1])...)
		}
	}
	references := regexp.MustCompile(`\$\{\{ (inputs|steps|runner|github)\.([\w.-]+) \}\}`).FindAllStringSubmatch(string(text), -1)
	if len(references) != strings.Count(string(text), "${{") {
		t.Errorf("%d of %d expressions are of inputs, steps, runner or github", len(references), strings.Count(string(text), "${{"))
	}
	for _, r := range references {
		if _, declared := action.Inputs[r[2]]; r[1] == "inputs" && !declared || r[1] == "steps" && !outputs[r[2]] {
			t.Errorf("%s.%s is not there: inputs %v, outputs %v", r[1], r[2], action.Inputs, outputs)
		}
	}
	if len(built) == 0 {
		t.Error("the action builds no programs")
	}
	for _, name := range built {
		if !slices.Contains(component.Names(), name) {
			t.Errorf("the action builds %q, want one of %v", name, component.Names())
		}
	}
}

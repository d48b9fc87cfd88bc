package istio

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// refused begins what istiod logs of a value in its environment that it cannot read, such
// as a word where it wants a number. It then uses its default (pkg/env/var.go of Istio).
const refused = "Invalid environment variable value `"

// checkTaken says which value of the environment that istiod was asked to have it did not
// take: a run with it would be one of the default.
func (i *instance) checkTaken() error {
	env := i.c.opts.Resources.Env
	if len(env) == 0 {
		return nil
	}
	log, err := os.ReadFile(filepath.Join(i.c.opts.LogDir, i.name+".log"))
	if err != nil {
		return fmt.Errorf("reading the log of %s: %w", i.name, err)
	}
	if line := refusal(string(log), env); line != "" {
		return fmt.Errorf("%s does not take a value of its environment, and uses its default: %s", i.name, line)
	}
	return nil
}

// refusal returns the line of a log that refuses the value of one of these NAME=VALUE; "" =
// there is none.
func refusal(log string, env []string) string {
	for line := range strings.Lines(log) {
		for _, kv := range env {
			if _, value, _ := strings.Cut(kv, "="); strings.Contains(line, refused+value+"`") {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

package cli

import (
	"bytes"
	"strings"
	"testing"
)

// On other systems than Linux commands that start programs refuse, also with flags and arguments that start some, and
// the others do as they do on Linux.
func TestOnlyRead(t *testing.T) {
	const refusal = "it starts programs, and this is scaler for darwin, which reads records: want scaler for Linux"
	do := func(args ...string) (string, error) {
		var out bytes.Buffer
		root := newRootCommand(streams{out: &out, err: &out})
		onlyRead(root, "darwin")
		root.SetArgs(args)
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, args := range []string{
		"rollout", "bench --versions 1.29.1,1.31.0", "upgrade --from 1.29.1 --to 1.31.0", "doctor", "cleanup", "cluster status", "components list",
		"diff --to 1.31.0", "diff DIR --validate-with envoy", "plan DIR --pods 5000 --verify", "xds", "worker",
	} {
		out, err := do(strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), refusal) || exitCode(err) != exitUsage {
			t.Errorf("scaler %s: got %q and %v, want the refusal as wrong usage", args, out, err)
		}
	}
	dir := t.TempDir()
	for _, args := range [][]string{{"report", dir}, {"compare", dir, dir}, {"plan", dir, "--pods", "5000"}, {"diff", dir}} {
		_, err := do(args...)
		if err == nil || strings.Contains(err.Error(), refusal) || !strings.Contains(err.Error(), dir) {
			t.Errorf("scaler %v: got %v, want that the folder has no records", args, err)
		}
	}
	for args, want := range map[string]string{"version": "scaler ", "schema": "draft/2020-12", "completion bash": "__start_scaler", "help": "reads the records of runs"} {
		if out, err := do(strings.Fields(args)...); err != nil || !strings.Contains(out, want) {
			t.Errorf("scaler %s: got %v and %q, want %q in it", args, err, out, want)
		}
	}
	root := newRootCommand(streams{out: new(bytes.Buffer), err: new(bytes.Buffer)})
	onlyRead(root, "darwin")
	shown := 0
	for _, cmd := range root.Commands() {
		if !cmd.Hidden {
			shown++
		}
	}
	if shown != len(readers) {
		t.Errorf("the help shows %d commands, want those %d that read", shown, len(readers))
	}
}

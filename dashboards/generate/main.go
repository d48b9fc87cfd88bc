// Command generate writes scaler's Grafana dashboards as JSON into the folder that its
// one argument names. hack/update-dashboards.sh calls it. The program scaler contains
// the files, but not this generator.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("arguments %q: want one, the folder to write to", args)
	}
	for _, b := range boards() {
		data, err := b.JSON()
		if err != nil {
			return fmt.Errorf("generating %s: %w", b.uid, err)
		}
		if err := os.WriteFile(filepath.Join(args[0], b.uid+".json"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// boards returns all dashboards, in reading order.
func boards() []board {
	return []board{controlPlane(), xdsAndCertificates(), dataPlane(), instrument()}
}

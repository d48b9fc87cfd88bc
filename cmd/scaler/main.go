// Command scaler measures how a service mesh's control plane scales: it rolls
// out meshes of simulated sidecars against the real control plane and records
// what that costs.
package main

import (
	"os"

	"scaler.mesh/scaler/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

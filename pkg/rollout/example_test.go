package rollout_test

import (
	"fmt"
	"strings"

	"scaler.mesh/scaler/pkg/rollout"
	"scaler.mesh/scaler/pkg/scenario"
)

// The runs of a scenario with two sizes in both modes. Run does them.
func ExampleNames() {
	document := scenario.New(scenario.Default())
	err := document.Read("scenario.yaml", strings.NewReader(`
apiVersion: scaler.mesh/v1
kind: Scenario
mesh:
  pods: [200, 400]
  mode: both
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	names, err := rollout.Names(document, rollout.Options{Out: "results", State: "state"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Join(names, "\n"))
	// Output:
	// istiod-permissive-200
	// istiod-strict-200
	// istiod-permissive-400
	// istiod-strict-400
}

// A field that cannot be used is named by its path, and nothing is started.
func ExampleRun() {
	document := scenario.New(scenario.Default())
	if err := document.Set("mesh.services", "300", ""); err != nil {
		fmt.Println(err)
		return
	}
	_, err := rollout.Run(nil, document, rollout.Options{Out: "results", State: "state"}) //nolint:staticcheck // no run begins
	fmt.Println(err)
	// Output:
	// mesh.services: got 300, want 1 to 200, no more than pods
}

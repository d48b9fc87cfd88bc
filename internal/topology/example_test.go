package topology_test

import (
	"fmt"

	"scaler.mesh/scaler/internal/topology"
)

// A star of four services: all call the first.
func ExampleBuild() {
	mesh := topology.Build(topology.Spec{Pods: 10, Services: 4, Namespaces: 2, Shape: topology.Star})
	for _, s := range mesh.Services {
		fmt.Printf("%s/%s: %d pods, calls", s.Namespace, s.Name, s.Pods)
		for _, i := range s.Calls {
			fmt.Print(" ", mesh.Services[i].Name)
		}
		fmt.Println()
	}
	// Output:
	// mesh-0/svc-0: 3 pods, calls
	// mesh-1/svc-1: 3 pods, calls svc-0
	// mesh-0/svc-2: 2 pods, calls svc-0
	// mesh-1/svc-3: 2 pods, calls svc-0
}

// What is not asked for has a default, and what cannot be is named.
func ExampleSpec_Validate() {
	s := topology.Spec{Pods: 200}.Defaults()
	fmt.Println(s.Services, s.Namespaces, s.Shape, s.FanOut)
	fmt.Println(topology.Spec{Pods: -1}.Validate())
	// Output:
	// 20 1 layers 3
	// mesh.pods: got -1, want 1 to 100000
}

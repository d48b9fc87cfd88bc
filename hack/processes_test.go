package hack

import (
	"fmt"
	"go/ast"
)

// processPackage is the package of child processes of this machine.
const processPackage = module + "internal/process"

// processNames are the names of internal/process that packages above the control planes may use, with the
// reason.
var processNames = map[string]string{
	"Group":        "what a run starts ends with the run",
	"GroupOptions": "as Group",
	"OpenGroup":    "as Group",
	"Priorities":   "the record states those of a run's group",
	"FreePorts":    "programs that a run starts need addresses",
}

// processUsers are packages above the control planes that may use all of internal/process, with
// the reason.
var processUsers = map[string]string{
	"internal/fleet":   "the application of a real sidecar is a process that it starts",
	"internal/latency": "the servers that it loads are processes that it starts",
	"internal/worker":  "a worker in another process is a child that it starts",
	"internal/cli":     "cleanup removes the processes that runs left",
}

// pidUsers are packages above the control planes that may ask for a process id, with the reason.
var pidUsers = map[string]string{
	"internal/fleet": "the event of a real sidecar's start names its processes",
}

// processesStayBelow finds uses of processes and their ids above the packages that start programs:
// another environment has none on this machine.
func processesStayBelow(r *repository) []finding {
	start, _ := floorOf("internal/controlplane")
	var found []finding
	for _, s := range r.code {
		floor, _ := floorOf(s.folder())
		if s.test || s.generated || floor <= start || below(s.folder(), []string{"hack", "test"}) {
			continue
		}
		name := s.importName(processPackage)
		ast.Inspect(s.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				of, ok := n.X.(*ast.Ident)
				if ok && of.Obj == nil && name != "" && of.Name == name && processNames[n.Sel.Name] == "" && processUsers[s.folder()] == "" {
					found = append(found, r.at(n, fmt.Sprintf("uses process.%s: a run knows programs by internal/controlplane and internal/place", n.Sel.Name)))
				}
			case *ast.CallExpr:
				if method, ok := n.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "PID" && pidUsers[s.folder()] == "" {
					found = append(found, r.at(n, "asks for a process id: read usage from a recorder.Source, and end programs by their controlplane.Life"))
				}
			}
			return true
		})
	}
	return found
}

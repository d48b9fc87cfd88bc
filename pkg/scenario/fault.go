package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Phases of a run in which faults may happen.
const (
	PhaseRollout = "rollout"
	PhaseSteady  = "steady"
	PhaseProbe   = "probe"
)

// FaultName names something that can be broken on purpose.
type FaultName string

// The faults; FaultKinds describes each.
const (
	KillControlPlane    FaultName = "kill-control-plane"
	RestartControlPlane FaultName = "restart-control-plane"
	ResetStreams        FaultName = "reset-streams"
	APIServerGone       FaultName = "api-server-gone"
	PauseScaler         FaultName = "pause-scaler"
	RollingRestart      FaultName = "rolling-restart"
	KillReplica         FaultName = "kill-replica"
	AddReplica          FaultName = "add-replica"
	RestartReplica      FaultName = "restart-replica"
	RestartReplicas     FaultName = "restart-replicas"
)

// Argument is the text after the name of a fault and a colon.
type Argument string

// The arguments.
const (
	NoArgument      Argument = ""
	ShareArgument   Argument = "SHARE%"    // of the sidecars, above 0 % and up to 100 %
	TimeArgument    Argument = "TIME"      // from 100ms to 10m
	ProgramArgument Argument = "[PROGRAM]" // optional: a program of the control plane
)

// Target is the part of a run that a fault breaks.
type Target string

// The targets.
const (
	OnControlPlane Target = "control plane" // a program of it, which the run started
	OnReplicas     Target = "replicas"      // of a control plane that runs as several programs
	OnSidecars     Target = "sidecars"      // of the run: their streams
	OnWorkloads    Target = "workloads"     // of the run: their pods are replaced
	OnAPIServer    Target = "API server"    // without which nobody watches the cluster
	OnScaler       Target = "scaler"        // which does not watch the cluster meanwhile
)

// FaultKind describes one kind of fault: the only place that states its argument, its phases,
// what it breaks and what it does in words. Package internal/run has its action.
type FaultKind struct {
	Name     FaultName
	Argument Argument
	// Probe reports whether it may happen in the probe phase, too, whose changes need the API
	// server and scaler itself. All faults may happen in rollout and steady.
	Probe bool
	On    Target
	// Adds is the number of replicas that there are more afterwards, below 0 for fewer; Needs is that of those
	// that there must be before. 0 = any.
	Adds, Needs int
	Does        string
}

// FaultKinds lists the kinds of fault.
var FaultKinds = []FaultKind{
	{Name: RestartControlPlane, Argument: ProgramArgument, Probe: true, On: OnControlPlane, Does: "ends the control plane as an update does, and starts it again"},
	{Name: KillControlPlane, Argument: ProgramArgument, Probe: true, On: OnControlPlane, Does: "kills the control plane, and starts it again; with a program, another than the one that serves the sidecars"},
	{Name: ResetStreams, Argument: ShareArgument, Probe: true, On: OnSidecars, Does: "cuts the xDS streams of a share of the sidecars"},
	{Name: APIServerGone, Argument: TimeArgument, On: OnAPIServer, Does: "stops the API server for a time"},
	{Name: PauseScaler, Argument: TimeArgument, On: OnScaler, Does: "stops all simulated sidecars for a time"},
	{Name: RollingRestart, On: OnWorkloads, Does: "restarts every workload, one after the other"},
	{Name: KillReplica, Probe: true, On: OnReplicas, Adds: -1, Needs: 2, Does: "kills a replica for good"},
	{Name: AddReplica, Probe: true, On: OnReplicas, Adds: 1, Does: "starts a further replica"},
	{Name: RestartReplica, Probe: true, On: OnReplicas, Needs: 2, Does: "restarts a replica, while the others go on"},
	{Name: RestartReplicas, Probe: true, On: OnReplicas, Needs: 2, Does: "restarts all replicas, one by one"},
}

// usage returns the syntax of the fault, without a phase.
func (k FaultKind) usage() string {
	if k.Argument == NoArgument || k.Argument == ProgramArgument {
		return string(k.Name)
	}
	return string(k.Name) + ":" + string(k.Argument)
}

// FaultUsage lists how faults are written, with commas.
func FaultUsage() string {
	var all []string
	for _, k := range FaultKinds {
		all = append(all, k.usage())
	}
	return strings.Join(all, ", ")
}

// Bounds of how long a fault may last.
const (
	minFaultTime = 100 * time.Millisecond
	maxFaultTime = 10 * time.Minute
)

// Fault is one thing to be broken, and when. It is written NAME[:ARGUMENT]@PHASE, as in
// kill-control-plane@steady or reset-streams:20%@rollout.
type Fault struct {
	Kind    FaultName
	Share   float64       // of the sidecars, 0 to 1: ShareArgument
	Time    time.Duration // that it lasts: TimeArgument
	Program string        // ProgramArgument; "" = the one that serves the sidecars
	Phase   string        // PhaseRollout, PhaseSteady or PhaseProbe
}

// Described returns the kind of the fault.
func (f Fault) Described() FaultKind {
	i := slices.IndexFunc(FaultKinds, func(k FaultKind) bool { return k.Name == f.Kind })
	if i < 0 {
		return FaultKind{Name: f.Kind}
	}
	return FaultKinds[i]
}

// Name returns the fault without its phase, as UnmarshalText reads it.
func (f Fault) Name() string {
	switch f.Described().Argument {
	case ShareArgument:
		return string(f.Kind) + ":" + strconv.FormatFloat(f.Share*100, 'g', 12, 64) + "%"
	case TimeArgument:
		return string(f.Kind) + ":" + f.Time.String()
	case ProgramArgument:
		if f.Program != "" {
			return string(f.Kind) + ":" + f.Program
		}
	}
	return string(f.Kind)
}

// String returns the fault as UnmarshalText reads it.
func (f Fault) String() string { return f.Name() + "@" + f.Phase }

// MarshalText returns the fault as UnmarshalText reads it.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a fault.
func (f *Fault) UnmarshalText(data []byte) error {
	text := string(data)
	name, phase, _ := strings.Cut(text, "@")
	kind, value, given := strings.Cut(name, ":")
	v := Fault{Kind: FaultName(kind), Phase: phase}
	described := v.Described()
	if described.Does == "" {
		return wrong(text, "NAME@PHASE, NAME being one of "+FaultUsage())
	}
	switch described.Argument {
	case NoArgument:
		if given {
			return wrong(text, kind+" without a value")
		}
	case ProgramArgument:
		if given && value == "" {
			return wrong(text, "the name of a program of the control plane after "+kind+":, or "+kind+" without a value")
		}
		v.Program = value
	case ShareArgument:
		number, percent := strings.CutSuffix(value, "%")
		share, err := strconv.ParseFloat(number, 64)
		if !percent || err != nil || !(share > 0 && share <= 100) {
			return wrong(text, "a share of the sidecars above 0% and up to 100%, as in "+kind+":20%@steady")
		}
		v.Share = share / 100
	case TimeArgument:
		var err error
		if v.Time, err = time.ParseDuration(value); err != nil || v.Time < minFaultTime || v.Time > maxFaultTime {
			return wrong(text, "a duration from 100ms to 10m, as in "+kind+":10s@steady")
		}
	}
	switch phase {
	case PhaseRollout, PhaseSteady:
	case PhaseProbe:
		if !described.Probe {
			return wrong(text, kind+"@rollout or @steady; in probe only the control plane and streams can be broken")
		}
	default:
		return wrong(text, "NAME@rollout, NAME@steady or NAME@probe")
	}
	*f = v
	return nil
}

// ParseFault reads a fault; its error is an [Error] without a path.
func ParseFault(text string) (Fault, error) {
	var f Fault
	err := f.UnmarshalText([]byte(text))
	return f, err
}

// FaultsIn returns the faults of a phase, in their order.
func FaultsIn(faults []Fault, phase string) []Fault {
	var in []Fault
	for _, f := range faults {
		if f.Phase == phase {
			in = append(in, f)
		}
	}
	return in
}

// FaultsText returns the faults as they are written, with spaces between them; "" of none.
func (l Load) FaultsText() string {
	var all []string
	for _, f := range l.Faults {
		all = append(all, f.String())
	}
	return strings.Join(all, " ")
}

// ChangeKind is a kind of change.
type ChangeKind string

// The kinds of change. What each writes is stated where its objects are made.
const (
	EndpointChange ChangeKind = "endpoint" // an endpoint of a service takes the place of another one
	RouteChange    ChangeKind = "route"    // the route to a service: concerns those who may call it
	PolicyChange   ChangeKind = "policy"   // who may call a service: concerns its own sidecars
	MetadataChange ChangeKind = "metadata" // an annotation of a Service: no sidecar needs to receive anything
	// RouteMetadataChange is an annotation of the object that RouteChange changes: no sidecar
	// needs to receive anything.
	RouteMetadataChange ChangeKind = "route-metadata"
	MeshWideChange      ChangeKind = "meshwide" // an object of the whole mesh: concerns every sidecar
)

// ChangeKinds lists the kinds of change, in display order.
var ChangeKinds = []ChangeKind{EndpointChange, RouteChange, PolicyChange, MetadataChange, RouteMetadataChange, MeshWideChange}

// ConcernsNobody reports whether no sidecar needs to receive a change of the kind. Whatever
// is sent is unnecessary cost.
func (k ChangeKind) ConcernsNobody() bool { return k == MetadataChange || k == RouteMetadataChange }

// Changes is a rate of changes and their kind, as in 5/s:route. The zero value is no
// changes.
type Changes struct {
	PerSecond Rate
	Kind      ChangeKind
}

// String returns the changes as UnmarshalText reads them; "" for none.
func (c Changes) String() string {
	if c.PerSecond == 0 {
		return ""
	}
	return c.PerSecond.String() + ":" + string(c.Kind)
}

// MarshalText returns the changes as UnmarshalText reads them.
func (c Changes) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads RATE or RATE:KIND; without a kind it is endpoint.
func (c *Changes) UnmarshalText(data []byte) error {
	text := string(data)
	number, kind, named := strings.Cut(text, ":")
	if !named {
		kind = string(EndpointChange)
	}
	v := Changes{Kind: ChangeKind(kind)}
	switch err := v.PerSecond.UnmarshalText([]byte(number)); {
	case err != nil && !strings.HasSuffix(number, "/s"):
		return wrong(text, "changes a second and, if not endpoint, their kind, as in 5/s or 5/s:route")
	case err != nil:
		return wrong(text, fmt.Sprintf("from %v/s to %v/s", MinRate, MaxRate))
	case !slices.Contains(ChangeKinds, v.Kind):
		return wrong(text, "one of the kinds "+oneOf(ChangeKinds))
	}
	*c = v
	return nil
}

// Count returns the number of changes that are due within a phase of this length.
func (c Changes) Count(length time.Duration) int {
	n := int(length.Seconds() * float64(c.PerSecond))
	for c.PerSecond.Due(n) < length {
		n++
	}
	for n > 0 && c.PerSecond.Due(n-1) >= length {
		n--
	}
	return n
}

package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// State is a state of the mesh that a control plane is sized for, with its needs; nil if
// the runs did not measure it.
type State struct {
	Name        string  `json:"name"`                  // steady, rollout, probe, change, cycle, churn, restart or replica gone
	MemoryBytes *Bounds `json:"memoryBytes,omitempty"` // peak; of the replica that needs most
	Cores       *Bounds `json:"cores,omitempty"`       // mean; of all replicas
	PeakCores   *Bounds `json:"peakCores,omitempty"`   // over 100 ms; of the replica that needs most
}

// Decides names the states that determine the request; "" if there is no request.
type Decides struct {
	Memory string `json:"memory"` // limits.memory
	CPU    string `json:"cpu"`    // requests.cpu, and the fewest processors
}

// The states.
const (
	stateSteady  = "steady"
	stateRollout = "rollout"
	stateProbe   = "probe"
	stateChange  = "change"
	stateCycle   = "cycle" // connections are closed at their age, in a shortened cycle
	stateChurn   = "churn"
	stateRestart = "restart" // all proxies reconnect after the control plane was killed
	// stateReplicaGone is the state with one replica less, in which the others serve its
	// sidecars.
	stateReplicaGone = "replica gone"
)

// stateSource says where a record has the figures of a state.
type stateSource struct {
	name  string
	path  string // of a usage
	cores string // of its cores, if not in the usage
	ask   string // the flag that makes runs have it
}

// stateSources are the states other than the rollout, whose figures a plan has anyway.
var stateSources = []stateSource{
	{name: stateSteady, path: "controlPlane.steady", ask: "--steady 60s"},
	{name: stateProbe, path: "controlPlane.probe", ask: "--probes 20"},
	{name: stateChange, path: "controlPlane.change", ask: "--change 1/s"},
	{name: stateCycle, path: "controlPlane.cycle", cores: "cycle.cores", ask: "--cycle 60s"},
	{name: stateChurn, path: "controlPlane.churn", ask: "--churn 1/s"},
	{name: stateRestart, path: "faults.kill-control-plane@steady.controlPlane", ask: "--fault kill-control-plane@steady"},
}

// memory returns the figure for the peak memory of one replica in the state.
func (s stateSource) memory() figure {
	return peakMemory(s.path + ".memoryBytes.peak")
}

// peak returns the figure for the cores of one replica over 100 ms in the state.
func (s stateSource) peak() figure {
	return figure{name: s.path + ".cores.peak100ms", terms: []term{constant, pods}, shown: &configured, divided: served, each: true}
}

// peakCores forecasts the cores of one replica over 100 ms in a state; nil if the largest
// run did not measure them, or if the runs do not show them.
func (s *sample) peakCores(of figure, t target, o Options) *Bounds {
	if of.of(s.runs[len(s.runs)-1]) == nil {
		return nil
	}
	made, err := of.forecast(s, t, o)
	if err != nil {
		s.warn(of.name, "%v", err)
		return nil
	}
	return made.bounds()
}

// states forecasts the needs in each state that the runs had. It adds one warning for all
// states that no run had.
func (s *sample) states(t target, o Options, estimates map[string]estimate) []State {
	rollout := State{Name: stateRollout, PeakCores: s.peakCores(stateSource{path: "controlPlane.rollout"}.peak(), t, o)}
	if e, known := estimates[rolloutMemory]; known {
		rollout.MemoryBytes = e.bounds()
	}
	all := []State{rollout}
	var missing, flags []string
	for _, source := range stateSources {
		memory := source.memory()
		cores := figure{name: cmp.Or(source.cores, source.path+".cores.mean"), terms: coresTerms, shown: &configured, divided: again}
		last := s.runs[len(s.runs)-1]
		if memory.of(last) == nil && cores.of(last) == nil {
			missing, flags = append(missing, source.name), append(flags, source.ask)
			continue
		}
		state := State{Name: source.name}
		for _, one := range []struct {
			figure figure
			into   **Bounds
		}{{memory, &state.MemoryBytes}, {cores, &state.Cores}} {
			if e, done := estimates[one.figure.name]; done {
				*one.into = e.bounds()
				continue
			}
			if one.figure.of(last) == nil {
				continue
			}
			made, err := one.figure.forecast(s, t, o)
			if err != nil {
				s.warn(one.figure.name, "%v", err)
				continue
			}
			estimates[one.figure.name] = made.estimate
			*one.into = made.bounds()
		}
		if source.cores == "" { // else the phase is shorter than what it stands for
			state.PeakCores = s.peakCores(source.peak(), t, o)
		}
		if share := last.Value(source.path + ".saturation"); share != nil && *share > record.Saturated && source.name != stateSteady && source.cores == "" {
			s.warn(source.path+".cores", "saturated in the largest run: where there are more processors it uses more cores, for a shorter time")
		}
		all = append(all, state)
	}
	if state := s.replicaGone(t, o); state != nil {
		all = append(all, *state)
	}
	if missing != nil {
		s.warn("states", "not measured, and so not sized for: %s: run with %s", strings.Join(missing, ", "), strings.Join(flags, " "))
	}
	return all
}

// replicaGone returns the state in which one replica of several is gone; nil if there is
// only one, or if the runs do not show what a replica needs for the sidecars that it
// serves. Each remaining replica then needs as much as a replica of a control plane with
// one replica less, in the state in which that is most.
func (s *sample) replicaGone(t target, o Options) *State {
	if t.replicas == 1 || len(s.replicas()) == 1 {
		return nil
	}
	t.replicas--
	memory := []figure{peakMemory(rolloutMemory)}
	for _, source := range stateSources {
		memory = append(memory, source.memory())
	}
	var most *Bounds
	for _, f := range memory {
		silent := *s // a copy, as the warnings are added for all replicas already
		if made, err := f.forecast(&silent, t, o); err == nil && made.upper() > most.upper() {
			most = made.bounds()
		}
	}
	if most == nil {
		return nil
	}
	return &State{Name: stateReplicaGone, MemoryBytes: most}
}

// upper returns the upper end of the interval, which is the safe side; the forecast if
// there is none; 0 for nil.
func (b *Bounds) upper() float64 {
	switch {
	case b == nil:
		return 0
	case b.High != nil:
		return *b.High
	}
	return b.Forecast
}

// worst returns the state that needs most, and how much; "" and 0 if there is none.
func (p *Plan) worst(of func(State) *Bounds) (name string, most float64) {
	for _, state := range p.States {
		if need := of(state).upper(); need > most {
			name, most = state.Name, need
		}
	}
	return name, most
}

// statesTable shows what each state needs.
func (p *Plan) statesTable() output.Table {
	t := output.Table{Head: []string{"state", "memory, peak", "low", "high", "cores, mean", "low", "high"}}
	peaks := slices.ContainsFunc(p.States, func(s State) bool { return s.PeakCores != nil })
	if peaks {
		t.Head = append(t.Head, "cores, 100 ms", "low", "high")
	}
	for _, state := range p.States {
		row := []string{state.Name}
		type column struct {
			bounds *Bounds
			print  func(*float64) string
		}
		columns := []column{{state.MemoryBytes, func(v *float64) string { return amount(bytesUnit, v) }}, {state.Cores, coresText}}
		if peaks {
			columns = append(columns, column{state.PeakCores, coresText})
		}
		for _, one := range columns {
			b := Bounds{}
			forecast := "-"
			if one.bounds != nil {
				b, forecast = *one.bounds, one.print(&one.bounds.Forecast)
			}
			row = append(row, forecast, one.print(b.Low), one.print(b.High))
		}
		t.Add(row...)
	}
	return t
}

func coresText(v *float64) string {
	if v == nil {
		return "-"
	}
	return digits(*v)
}

// sentence states which states decide.
func (d Decides) sentence() string {
	var parts []string
	if d.Memory != "" {
		parts = append(parts, fmt.Sprintf("the memory limit is that of %s", d.Memory))
	}
	if d.CPU != "" {
		parts = append(parts, fmt.Sprintf("the processors requested are those of %s", d.CPU))
	}
	if parts == nil {
		return ""
	}
	text := strings.Join(parts, "; ")
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

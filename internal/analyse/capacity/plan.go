package capacity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Options describe the plan to make. Errors of a field are of type *[scenario.Error], with
// its name as in podsPerNode.
type Options struct {
	Pods     int    // of the mesh that is planned for; with Validate 0 = the largest size run
	Scale    int    // of the captured mesh that is planned for, in place of Pods; 0 = Pods
	Services int    // of that mesh; 0 = as many for each pod as the largest run has
	Mode     string // of the runs; "" = permissive if there are such, or what all are
	// Dataplane is the data plane of the runs; "" = sidecars if there are such runs, or
	// that of all runs.
	Dataplane string
	// PodsPerNode is the number of pods per node with a proxy in that mesh; 0 = as in the
	// largest run. It does not apply to runs in which each pod has a proxy.
	PodsPerNode int

	Within     time.Duration // the rollout is to be done in this time; 0 = no matter
	Wait       time.Duration // a sidecar of a burst is to wait no longer than this to be served; 0 = until it would be refused
	Headroom   float64       // share that is asked for above the interval's upper end
	Processors int           // of each replica; 0 = as few as do
	// LimitProcessors asks for a processor limit, too; false = none: GOMAXPROCS bounds what
	// a control plane uses, and a limit makes it stand still.
	LimitProcessors bool
	MemoryBytes     int64 // of each replica; 0 = as much as is needed
	// ReplicasMax limits the number of replicas in the plan; 0 = the fewest that a run has. With Validate, runs
	// with more replicas are not forecast.
	ReplicasMax int

	// NodeSpeed is the speed of the processors that the plan is for; nil = the mean of those of the runs.
	NodeSpeed *record.Speed

	Validate bool // leave the largest size out and forecast it
	Force    bool // forecast from too little, or too far

	// Install returns how the request of a plan is carried out; nil if that is not known;
	// nil = it is not known of any.
	Install func(Target, Request) *Install

	// Known are the limits of control planes by name, for records that were written
	// before limits were recorded; nil = none.
	Known map[string]*record.Limits
}

// DefaultHeadroom is the share above the interval's upper end that plans ask for by default.
const DefaultHeadroom = 0.3

// Plan states what a mesh of the target's size needs.
type Plan struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Target     Target   `json:"target"`
	Runs       []Size   `json:"runs"` // that it is made from
	Figures    []Figure `json:"figures"`
	// Processor is the speed of the processors that processor time and cores are of; nil = it is not known: those of the runs.
	Processor *record.Speed `json:"processor,omitempty"`
	// States are the states of the mesh in the runs. The request is sized for the worst
	// of them, which Decides names.
	States  []State `json:"states"`
	Decides Decides `json:"decides"`
	// Work is the processor time of the rollout by what it is used for; nil if the runs
	// do not show it.
	Work *Work `json:"work,omitempty"`
	// Sidecars are the needs of real sidecars; nil if the runs had none.
	Sidecars *Sidecars `json:"sidecars,omitempty"`
	// Upgrade states the free resources that an upgrade needs; nil if no run had one.
	Upgrade *Upgrade `json:"upgrade,omitempty"`
	// Reconnect is the shortest time until all streams of nodes' proxies are admitted
	// again after a restart; nil if each pod has a proxy.
	Reconnect *Limit  `json:"reconnect,omitempty"`
	Limits    []Limit `json:"limits"` // the longest first
	Binds     string  `json:"binds"`  // the first that is reached
	Request   Request `json:"request"`
	// Install states how to apply the request; nil if that is not known of the control
	// plane.
	Install  *Install  `json:"install,omitempty"`
	Warnings []Warning `json:"warnings"`
	// Verification is the result of a run with the requested resources; nil if there was
	// none.
	Verification *Verification `json:"verification,omitempty"`

	like     *record.Run
	forNodes bool // Processor has the speed that was stated for the nodes
}

// Like returns the largest of the runs that the plan is made from. They differ only in
// size.
func (p *Plan) Like() *record.Run { return p.like }

// Kind is a Plan's kind, with record.APIVersion.
const Kind = "Plan"

// Target is the mesh that is planned for.
type Target struct {
	Pods     int    `json:"pods"`
	Services int    `json:"services"`
	Mode     string `json:"mode"` // the knobs, where they are no preset
	// Mesh is the captured mesh that it is; nil = it is synthetic.
	Mesh *Captured `json:"mesh,omitempty"`
	// Dataplane is the data plane of the pods; "" = a sidecar each. The following are
	// for other data planes: each node has a proxy, called Proxy, that serves its
	// pods. PodsPerNode is 0 of a captured mesh, and Proxies counts all, sidecars and waypoints among them.
	Dataplane    string            `json:"dataplane,omitempty"`
	PodsPerNode  int               `json:"podsPerNode,omitempty"`
	Nodes        int               `json:"nodes,omitempty"`
	Proxy        string            `json:"proxy,omitempty"`
	Proxies      int               `json:"proxies,omitempty"`
	Knobs        scenario.Settings `json:"knobs"`
	ControlPlane string            `json:"controlPlane"`
	Version      string            `json:"version,omitempty"`
	// ConfigurationBytes is the size of the configuration that a proxy will hold; 0 = not
	// known.
	ConfigurationBytes float64 `json:"configurationBytes,omitempty"`
}

// Install is a document that gives a control plane what a plan requests.
type Install struct {
	How      string `json:"how"`      // a sentence, with the command that takes the document
	Document any    `json:"document"` // an object that is marshalled as JSON or YAML
}

// Size is a number of pods, with the number of runs of it.
type Size struct {
	Pods int `json:"pods"`
	Runs int `json:"runs"`
	// Scale is the scale of the captured mesh; 0 = it is synthetic.
	Scale int `json:"scale,omitempty"`
	// Replicas counts the runs with several replicas, by the number of replicas.
	Replicas map[int]int `json:"replicas,omitempty"`
	// Nodes counts the runs with a proxy on each node, by the number of nodes.
	Nodes map[int]int `json:"nodes,omitempty"`

	repeats bool // several runs of it are equal
}

// Figure is a forecast, in base units, with its 95 % prediction interval for one more
// run; nil if there are too few runs. Memory is per replica, of the one that needs most;
// processor time is the sum of all.
type Figure struct {
	Name     string   `json:"name"` // its path in the record
	Unit     string   `json:"unit"` // bytes or s
	Forecast float64  `json:"forecast"`
	Low      *float64 `json:"low"`
	High     *float64 `json:"high"`
	Measured *float64 `json:"measured"` // with Validate: the mean of the runs left out; nil otherwise
	Error    *float64 `json:"error"`    // forecast less measured, over measured; nil without
	Model    []Part   `json:"model,omitempty"`
}

// Part is a term of a figure's model.
type Part struct {
	Term  string  `json:"term"`
	Value float64 `json:"value"` // figure for each one of the term
}

// Limit is the shortest possible duration of the rollout under one limit.
type Limit struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Rule    string  `json:"rule"`
}

// Warning is a warning about a figure.
type Warning struct {
	About string `json:"about"`
	Text  string `json:"text"`
}

// Make plans from runs. An error is about the options or about too few runs; it says what
// is wanted, and which rollout to run.
func Make(runs []record.Run, o Options) (*Plan, error) {
	s, err := choose(runs, o)
	if err != nil {
		return nil, err
	}
	if err := s.onOneProcessor(o); err != nil {
		return nil, err
	}
	if o.Pods, err = s.podsOf(o); err != nil {
		return nil, err
	}
	var left []*record.Run
	if o.Validate {
		if o.Pods != 0 && o.Pods != s.largest() {
			return nil, scenario.Refuse("pods", o.Pods, "%d, the largest size, which is what is forecast to validate", s.largest())
		}
		o.Pods = s.largest()
		if len(s.sizes()) < 2 {
			return nil, s.enough(o.Pods, o)
		}
		s, left = s.split()
	}
	if err := s.enough(o.Pods, o); err != nil {
		return nil, err
	}
	if left != nil && o.PodsPerNode == 0 && s.growth == nil {
		o.PodsPerNode = usualPerNode(left)
	}
	s.onePace(o.Pods, o.Known)
	t, err := s.aim(o)
	if err != nil {
		return nil, err
	}
	p, err := s.fewest(t, left, o)
	if err != nil {
		return nil, err
	}
	// Records from elsewhere may have figures whose sums are too large for a number.
	if _, err := json.Marshal(p); err != nil {
		return nil, fmt.Errorf("planning from %s: their figures are beyond all that can be measured: %w", output.Many(len(s.runs), "run"), err)
	}
	return p, nil
}

// fewest returns the plan with the fewest replicas that suffice; if none does, the one
// whose rollout ends first.
func (s *sample) fewest(t target, left []*record.Run, o Options) (*Plan, error) {
	allowed, err := s.allowed(left, o)
	if err != nil {
		return nil, err
	}
	var best *Plan
	for _, replicas := range allowed {
		t.replicas = float64(replicas)
		with := *s
		with.warnings = slices.Clone(s.warnings)
		measured := slices.DeleteFunc(slices.Clone(left), func(r *record.Run) bool {
			p := pointOf(r)
			return p.replicas != t.replicas || p.proxies != t.proxies
		})
		p, suffices, err := with.plan(t, measured, o)
		if err != nil {
			return nil, err
		}
		if suffices {
			return p, nil
		}
		if best == nil || p.Request.slowest() < best.Request.slowest() {
			best = p
		}
	}
	return best, nil
}

// allowed returns the numbers of replicas to try. Runs that all have the same number of
// replicas, if it is not one, say nothing about another number. If runs of the planned
// size are compared with the plan, it is one of their numbers.
func (s *sample) allowed(left []*record.Run, o Options) ([]int, error) {
	known := s.replicas()
	if left != nil {
		largest := sample{runs: left}
		known = largest.replicas()
	}
	most := cmp.Or(o.ReplicasMax, known[0])
	if left == nil && (len(known) > 1 || known[0] == 1) {
		var all []int
		for replicas := range most {
			all = append(all, replicas+1)
		}
		return all, nil
	}
	within := slices.DeleteFunc(slices.Clone(known), func(replicas int) bool { return replicas > most })
	if len(within) == 0 {
		return nil, scenario.Refuse("replicasMax", most, "%d or more, as the runs have, or runs of one replica", known[0])
	}
	return within[len(within)-1:], nil
}

// vague is the relative width of an interval above which more runs are recommended.
const vague = 0.5

// plan makes the plan from the sample for the target, whose number of replicas is given.
// It reports whether they suffice.
func (s *sample) plan(t target, left []*record.Run, o Options) (p *Plan, suffices bool, err error) {
	last := s.runs[len(s.runs)-1]
	c := last.Environment.ControlPlane
	p = &Plan{
		APIVersion: record.APIVersion, Kind: Kind, Runs: s.sizes(), Processor: s.processor, forNodes: s.forNodes, like: last,
		Target: Target{
			Pods: o.Pods, Services: t.services, Mode: modeOf(last), Mesh: t.captured, Knobs: last.Environment.Knobs,
			ControlPlane: c.Name, Version: c.Version, ConfigurationBytes: t.configuration,
		},
	}
	if kindOf(last) != sidecars {
		p.Target.Dataplane, p.Target.Proxy, p.Target.PodsPerNode, p.Target.Nodes = last.Dataplane(), last.Proxies.Name, t.perNode, t.nodes
		p.Target.Proxies = t.streams
		if kindOf(last) == several { // it is of all proxies, for each pod
			p.Target.ConfigurationBytes = 0
		}
	}
	var unknown error
	p.Work, unknown = s.work(t, left)
	estimates := map[string]estimate{}
	for _, f := range figures {
		var made forecast
		if f.name == rolloutCPU && p.Work != nil {
			made = p.Work.forecast()
		} else if made, err = f.forecast(s, t, o); err != nil {
			s.warn(f.name, "%v", err)
			continue
		}
		estimates[f.name] = made.estimate
		if f.name == rolloutCPU && !made.good {
			s.warn("request.resources", "requests.cpu follows from the processor time of saturated runs: with more processors than theirs it is a lower bound")
		}
		s.warnIfVague(f.name, made.estimate, o)
		p.add(f.name, f.unit(), made.estimate, mean(left, f.of), made.parts)
	}
	cpu, known := estimates[rolloutCPU]
	if !known {
		return nil, false, s.untold(rolloutCPU)
	}
	m := meshOf(last, o.Known)
	if m.limits == nil {
		s.warn("limits", "the records hold no limits of %s: rollout time is by processors and arrival alone", c.Name)
	}
	s.warnOfSpeed()
	if n := existing(s.runs); n > 0 {
		s.warn("controlPlane", "%s of %d used an existing control plane: its memory before a run may contain what earlier runs needed, so that the memory of the mesh may be forecast too low, and what else the cluster did is in all figures", output.Many(n, "run"), len(s.runs))
	}
	pace := s.measurePace(o.Known)
	others := m.others * t.pods / m.pods // what a cluster does, it does for pods
	m.replicas = int(t.replicas)
	m.pods = t.pods
	m.serve(t.own, t.services, t.nodes)
	m.cpuSeconds, m.cpuLeast, m.cpuMost, m.arrival, m.others, m.usable = cpu.value, cpu.lower(), cpu.upper(), pace.arrival, 0, 0
	if len(left) > 0 {
		// The runs that were left out ran on the same machine as the others.
		shared := m
		shared.others, shared.usable = others, s.usable(left)
		p.settle(shared, pace, mean(left, (*record.Run).RolloutSeconds))
	}
	p.States, p.Sidecars, p.Upgrade = s.states(t, o, estimates), s.sidecars(t), s.upgrade()
	if unknown != nil {
		s.warn("work", "what processor time is used for is not known: %v", unknown)
	}
	suffices = p.ask(m, pace, estimates, o)
	s.warnOfReplicas(m.replicas)
	s.warnOfBuffers(t)
	p.Warnings = append(p.Warnings, s.warnings...)
	if o.Install != nil {
		p.Install = o.Install(p.Target, p.Request)
	}
	return p, suffices, nil
}

// warnIfVague warns that the interval of a figure is wide, and recommends runs that would
// make it narrower.
func (s *sample) warnIfVague(figure string, e estimate, o Options) {
	if e.bounded && (e.high > (1+vague)*e.value || e.low < (1-vague)*e.value) {
		s.warn(figure, "the interval is wide, from %+.0f%% to %+.0f%%: %s, or as near to the target as is possible", (e.low/e.value-1)*100, (e.high/e.value-1)*100, advice(s, o))
	}
}

// existing counts the runs in an existing cluster.
func existing(runs []*record.Run) (n int) {
	for _, r := range runs {
		if r.Environment.Existing != nil {
			n++
		}
	}
	return n
}

// warnOfReplicas adds warnings about what the runs do not show for this number of
// replicas.
func (s *sample) warnOfReplicas(replicas int) {
	const about = "request.replicas"
	known := s.replicas()
	most := known[len(known)-1]
	switch {
	case replicas == 1:
	case most == 1:
		s.warn(about, "no run had several replicas: processor time is taken to be what one uses, though each replica watches the whole mesh, and memory what one with all sidecars needs")
	case len(known) == 1:
		s.warn(about, "all runs had %s: what a replica needs when it serves the sidecars of another that is gone is not known", output.Many(replicas, "replica"))
	case replicas > most:
		s.warn(about, "no run had more than %s", output.Many(most, "replica"))
	}
}

// untold returns the error for a figure without which there is no plan. It is the text of
// the last warning about it.
func (s *sample) untold(name string) error {
	err := errNoModel
	for _, d := range s.warnings {
		if d.About == name {
			err = errors.New(d.Text)
		}
	}
	return fmt.Errorf("planning: %s: %w", name, err)
}

// add adds a figure to the plan.
func (p *Plan) add(name, unit string, e estimate, measured *float64, model []Part) {
	b := e.bounds()
	f := Figure{Name: name, Unit: unit, Forecast: b.Forecast, Low: b.Low, High: b.High, Measured: measured, Model: model}
	if measured != nil && *measured != 0 {
		f.Error = new(e.value / *measured - 1)
	}
	p.Figures = append(p.Figures, f)
}

// settle adds the rollout time with these processors.
func (p *Plan) settle(m mesh, pace pace, measured *float64) {
	if pace.known {
		parts := []Part{{"time of the limit that binds", pace.fit.Terms[0].Value}}
		if after := pace.after(m.pods); after > 0 { // the start delay of the last pods
			parts = append(parts, Part{constant.name, after})
		}
		p.add(rolloutTime, secondsUnit, pace.at(m), measured, parts)
	}
}

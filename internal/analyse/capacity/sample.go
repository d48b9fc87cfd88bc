package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// sample holds the runs that a plan is made from: completed, of one mode, and alike in
// all but size.
type sample struct {
	runs     []*record.Run
	warnings []Warning
	queuing  bool    // pushes queued, and so merged, in the largest runs
	merging  bool    // and merged the more the larger the mesh
	growth   *growth // of a captured mesh; nil = the mesh is synthetic
	// processor is the speed to which processor time and cores of runs were converted; nil = they were not. measured has, for each
	// converted run, the run as it was measured.
	processor *record.Speed
	forNodes  bool // processor was stated for the nodes (--node-speed)
	measured  map[*record.Run]*record.Run
}

// choose selects the runs of a data plane and a mode. If none is given, it is the default
// of `scaler rollout`, sidecars and permissive, if there are such runs; otherwise that of
// the runs, if they all have the same.
func choose(runs []record.Run, o Options) (sample, error) {
	var s sample
	left := map[string]int{}
	for i := range runs {
		r := &runs[i]
		switch {
		case r.Status != record.StatusCompleted:
			left[incomplete(r)]++
		case r.PodCount() < 1:
			left["of no pods"]++
		case r.Scenario.Mesh.Share > 0: // more pods of the same workloads are no copies, by which captured meshes grow
			left["of a share of a captured mesh"]++
		case disturbed(r):
			left["disturbed while rolling out"]++
		default:
			s.runs = append(s.runs, r)
		}
	}
	if len(s.runs) == 0 {
		var why []string
		for _, reason := range slices.Sorted(maps.Keys(left)) {
			why = append(why, fmt.Sprintf("%d %s", left[reason], reason))
		}
		return s, fmt.Errorf("planning from %s: none of them completed undisturbed (%s): %s", output.Many(len(runs), "run"), strings.Join(why, "; "), advice(nil, o))
	}
	for _, by := range []struct {
		field, given, preset string
		of                   func(*record.Run) string
	}{
		{"dataplane", o.Dataplane, record.SidecarDataplane, (*record.Run).Dataplane},
		{"mode", o.Mode, "permissive", modeOf},
	} {
		if err := s.only(by.field, by.given, by.preset, by.of); err != nil {
			return s, err
		}
	}
	if r := s.runs[0]; r.Mesh == nil && kindOf(r) == several {
		return s, fmt.Errorf("planning from %s of data plane %s: want runs with sidecars, with proxies of nodes alone, or of a captured mesh: what each kind of proxy costs where there are several was not separated", output.Many(len(s.runs), "run"), r.Dataplane())
	}
	slices.SortStableFunc(s.runs, func(a, b *record.Run) int {
		return cmp.Or(cmp.Compare(a.PodCount(), b.PodCount()), cmp.Compare(pointOf(a).replicas, pointOf(b).replicas))
	})
	s.growth = growthOf(s.runs)
	if r := s.runs[0]; s.growth == nil && r.Mesh != nil && kindOf(r) != sidecars {
		return s, fmt.Errorf("planning from %s of a captured mesh of data plane %s: want runs whose pods, services, nodes and waypoints all grow with the scale, of one file and without --pods-per-node", output.Many(len(s.runs), "run"), r.Dataplane())
	}
	for _, why := range slices.Sorted(maps.Keys(left)) {
		s.warn("runs", "left out %s of %d: %s", output.Many(left[why], "run"), len(runs), why)
	}
	if scalers := texts(s.runs, func(r *record.Run) string { return r.Environment.Scaler }); len(scalers) > 1 {
		s.warn("runs", "made by several versions of scaler (%s), whose proxies may ask for different things", strings.Join(scalers, ", "))
	}
	if difference := s.difference(); difference != "" && !o.Force {
		return s, fmt.Errorf("planning from %s: they differ in %s: name folders whose runs differ in size alone, or --force to treat them as equal", output.Many(len(s.runs), "run"), difference)
	} else if difference != "" {
		s.warn("runs", "forced: the runs are treated as equal, although they differ in %s", difference)
	}
	return s, nil
}

// only drops the runs in which a property differs from the value of the field of Options;
// "" = its default.
func (s *sample) only(field, given, preset string, of func(*record.Run) string) error {
	seen := texts(s.runs, of)
	longer := slices.DeleteFunc(slices.Clone(seen), func(text string) bool { return !strings.HasPrefix(text, given+" ") })
	if given != "" && !slices.Contains(seen, given) && len(longer) == 1 {
		given = longer[0] // "mixed with captured waypoints" for "mixed"
	}
	switch {
	case given != "" && !slices.Contains(seen, given):
		return scenario.Refuse(field, given, "that of a completed run: %s", output.Plain(strings.Join(seen, ", ")))
	case given != "":
	case slices.Contains(seen, preset):
		given = preset
	case len(seen) > 1:
		return scenario.Refuse(field, "", "one of %s, as the runs are of several", output.Plain(strings.Join(seen, ", ")))
	default:
		given = seen[0]
	}
	s.runs = slices.DeleteFunc(s.runs, func(r *record.Run) bool { return of(r) != given })
	return nil
}

// kind distinguishes runs by the proxies that they had.
type kind int

const (
	sidecars kind = iota // one in each pod
	ofNodes              // those of nodes alone, of a synthetic mesh
	several              // those of nodes, and sidecars or waypoints, or those of a captured mesh: they grow in step with the pods
)

func kindOf(r *record.Run) kind {
	switch {
	case r.Proxies == nil || r.Proxies.Nodes == 0:
		return sidecars
	case r.Mesh == nil && r.Proxies.Sidecars == nil && r.Proxies.Waypoints == nil && r.Waypoints() == "":
		return ofNodes
	}
	return several
}

// proxiesOf returns the number of proxies of a run, of all kinds.
func proxiesOf(r *record.Run) int {
	if kindOf(r) == sidecars {
		return r.PodCount()
	}
	n := r.Proxies.Nodes
	if r.Proxies.Sidecars != nil {
		n += *r.Proxies.Sidecars
	}
	if w := r.Proxies.Waypoints; w != nil && w.Ready != nil {
		n += *w.Ready
	}
	return n
}

// ownOf returns the number of pods of a run that had a proxy each.
func ownOf(r *record.Run) int {
	switch {
	case kindOf(r) == sidecars:
		return r.PodCount()
	case r.Proxies.Sidecars != nil:
		return *r.Proxies.Sidecars
	}
	return 0
}

// nodesOf returns the number of nodes of a run that had a proxy each.
func nodesOf(r *record.Run) int {
	if kindOf(r) == sidecars {
		return 0
	}
	return r.Proxies.Nodes
}

// incomplete states why a run that did not complete is not used for forecasts. The data
// that `scaler report` recovers of a killed run covers phases without an end and lacks
// the results of its sidecars: it looks like a measurement of that size, but is not one.
func incomplete(r *record.Run) string {
	switch {
	case r.Status == record.StatusInterrupted && r.Finished == nil:
		return "killed or still under way, so that its figures are partial"
	case r.Status == record.StatusInterrupted:
		return "interrupted, so that its figures are partial"
	default:
		return string(r.Status)
	}
}

func (s *sample) warn(about, format string, args ...any) {
	s.warnings = append(s.warnings, Warning{about, fmt.Sprintf(format, args...)})
}

// disturbed reports whether a fault was injected during the rollout.
func disturbed(r *record.Run) bool {
	return len(scenario.FaultsIn(r.Scenario.Load.Faults, scenario.PhaseRollout)) > 0
}

// modeOf returns the mode of a run; its settings if they are not those of a mode.
func modeOf(r *record.Run) string {
	if r.ModeName() != "" {
		return r.ModeName()
	}
	k := r.Environment.Knobs
	return fmt.Sprintf("mtls=%s,scope=%s,authz=%s", k.MTLS, k.Scope, k.Authz)
}

// notOfPlans are conditions in which runs of one plan may differ, with the reason.
var notOfPlans = map[string]string{
	record.PodsCondition:        "what is planned for",
	record.ServicesCondition:    "part of the size",
	"namespaces":                "follow from the services",
	record.ReplicasCondition:    "part of the size",
	record.PodsPerNodeCondition: "part of the size",
	record.DataplaneCondition:   "runs of one are chosen",
	record.SettingsCondition:    "runs of one mode are chosen",
	"profile":                   "compared by what it was asked for with, as its parts grow with the size",
	"baseline":                  "no figure of a plan depends on its length",
	"settle":                    "no figure of a plan depends on its length",
	"steady":                    "no figure of a plan depends on its length",
	"probes":                    "come after what is planned for",
	"change duration":           "comes after what is planned for",
	"kernel":                    "of the machine, the processors and memory are compared",
	"Kubernetes":                "another version of the API server changes nothing that the control plane receives",
	"KWOK":                      "another version changes nothing that the control plane receives",
	"program's source":          "the program's digest is compared",
}

// conditions returns the properties in which runs must be alike, except for their size, to be fitted by one
// model.
func conditions() (all []record.Condition) {
	for _, c := range record.Conditions {
		if notOfPlans[c.Name] == "" {
			all = append(all, c)
		}
	}
	return append(all,
		record.Condition{Name: "profile", Of: func(r *record.Run) string {
			return strings.TrimSpace(cmp.Or(r.Scenario.Mesh.Profile, topology.Plain) + " " + r.Scenario.Mesh.Parts.String())
		}},
		record.Condition{Name: "the control plane's settings", Of: func(r *record.Run) string { return fmt.Sprint(r.Environment.ControlPlane.Settings) }},
	)
}

// difference names the first of the conditions in which runs differ; "" if there is none.
func (s *sample) difference() string {
	for _, c := range conditions() {
		if seen := texts(s.runs, c.Of); len(seen) > 1 {
			return fmt.Sprintf("%s (%s)", c.Name, output.Plain(strings.Join(seen, "; ")))
		}
	}
	return ""
}

// texts returns the distinct values of a property over the runs, without "".
func texts(runs []*record.Run, of func(*record.Run) string) []string {
	seen := map[string]bool{}
	for _, r := range runs {
		seen[of(r)] = true
	}
	delete(seen, "")
	return slices.Sorted(maps.Keys(seen))
}

func (s *sample) sizes() []Size { return sizesOf(s.runs) }

// sizesOf returns the numbers of pods run, ascending, with the number of runs of each.
func sizesOf(runs []*record.Run) []Size {
	var all []Size
	seen := map[point]bool{}
	for _, r := range runs {
		if n := len(all); n == 0 || all[n-1].Pods != r.PodCount() {
			all = append(all, Size{Pods: r.PodCount(), Scale: scaleOf(r)})
		}
		one := &all[len(all)-1]
		one.Runs++
		at := pointOf(r)
		if replicas := int(at.replicas); replicas > 1 {
			if one.Replicas == nil {
				one.Replicas = map[int]int{}
			}
			one.Replicas[replicas]++
		}
		if nodes := nodesOf(r); nodes > 0 {
			if one.Nodes == nil {
				one.Nodes = map[int]int{}
			}
			one.Nodes[nodes]++
		}
		one.repeats = one.repeats || seen[at.size()]
		seen[at.size()] = true
	}
	return all
}

// repeated reports whether there are several runs of the size with the same number of
// replicas and nodes.
func (s Size) repeated() bool { return s.repeats }

// replicas returns the numbers of replicas of the runs, ascending.
func (s *sample) replicas() []int {
	var all []int
	for _, r := range s.runs {
		all = append(all, int(pointOf(r).replicas))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// largest returns the greatest number of pods run.
func (s *sample) largest() int { return s.runs[len(s.runs)-1].PodCount() }

// split separates the runs of the largest size.
func (s *sample) split() (rest sample, largest []*record.Run) {
	at := slices.IndexFunc(s.runs, func(r *record.Run) bool { return r.PodCount() == s.largest() })
	return sample{runs: s.runs[:at], warnings: s.warnings, growth: s.growth, processor: s.processor, forNodes: s.forNodes, measured: s.measured}, s.runs[at:]
}

// enough returns an error that states why the runs are too few for a forecast, and what
// to run. With Force it adds a warning instead.
func (s *sample) enough(pods int, o Options) error {
	sizes := s.sizes()
	if len(sizes) < 2 {
		return fmt.Errorf("planning for %d pods: one size only: %s", pods, advice(s, o))
	}
	if pods < sizes[0].Pods {
		if !o.Force {
			return scenario.Refuse("pods", pods, "%d or more, the smallest size run, or --force", sizes[0].Pods)
		}
		s.warn("runs", "forced: %d pods are fewer than the smallest size run, of %d", pods, sizes[0].Pods)
	}
	missing := lacks(sizes, pods)
	if missing != nil && !o.Force {
		return fmt.Errorf("planning for %d pods: %s: %s, or --force", pods, missing[0], advice(s, o))
	}
	for _, why := range missing {
		s.warn("runs", "forced: %s", why)
	}
	return nil
}

// lacks states what is missing in runs of these sizes, the largest last, for a forecast
// of this number of pods; nil = nothing.
func lacks(sizes []Size, pods int) (all []string) {
	if len(sizes) < sizesNeeded {
		all = append(all, fmt.Sprintf("%s run, %d are needed", sizesWere(len(sizes)), sizesNeeded))
	}
	if len(sizes) < sizesUnrepeated && !slices.ContainsFunc(sizes, Size.repeated) {
		all = append(all, fmt.Sprintf("every size was run once: repeats are needed, or %d sizes", sizesUnrepeated))
	}
	if n := len(sizes); n > 0 && pods > Farthest*sizes[n-1].Pods {
		all = append(all, fmt.Sprintf("more than %d times the largest run, of %d pods", Farthest, sizes[n-1].Pods))
	}
	return all
}

func sizesWere(n int) string {
	if n == 1 {
		return "1 size was"
	}
	return output.Many(n, "size") + " were"
}

// advice returns the command for the missing runs. It suggests a size of half the target,
// which is near enough that little can change in between. A size may have an error of its
// own, which repeats do not reduce, so that many sizes are better than many repeats
// (docs/results/forecasts.md).
func advice(s *sample, o Options) string {
	ask := scenario.Default()
	if s != nil {
		run := s.runs[0]
		ask = run.Scenario
		ask.Instrument.Dilation = scenario.Dilation{Factor: run.Slowdown()} // which runs of one plan share
		if ask.Mesh.PodsPerNode != 0 {
			ask.Mesh.PodsPerNode = usualPerNode(s.runs)
		}
	} else {
		ask.Mesh.Mode = scenario.List[string]{cmp.Or(o.Mode, "permissive")}
		if o.Dataplane != "" {
			ask.Mesh.Dataplane = scenario.List[string]{o.Dataplane}
		}
		ask.Mesh.PodsPerNode = cmp.Or(o.PodsPerNode, ask.Mesh.PodsPerNode)
	}
	ask.Repeats, ask.Load.Probes = 2, 0
	var sizes []int
	last := 0
	for sixteenths := 2; sixteenths <= 8; sixteenths++ {
		if s != nil && s.growth != nil {
			planned, _ := s.growth.scaleFor(o.Pods)
			last = max(last+1, (planned*sixteenths+15)/16)
		} else {
			last = max(last+10, (o.Pods*sixteenths/16+9)/10*10)
		}
		sizes = append(sizes, last)
	}
	return "run '" + RolloutCommand(ask, sizes) + "'"
}

// RolloutCommand returns the command that rolls out the mesh of a scenario in these sizes: numbers of pods, or of copies of a captured
// mesh. Services and namespaces follow from the pods.
func RolloutCommand(ask scenario.Scenario, sizes []int) string {
	ask.ControlPlane.Upgrade = scenario.Upgrade{}
	ask.Mesh.Pods, ask.Mesh.Scale, ask.Mesh.Services, ask.Mesh.Namespaces = sizes, nil, 0, 0
	if ask.Mesh.File != "" {
		ask.Mesh.Pods, ask.Mesh.Scale = nil, sizes
	}
	return output.Command(append([]string{"scaler", scenario.Rollout}, ask.Args(scenario.Rollout)...)...)
}

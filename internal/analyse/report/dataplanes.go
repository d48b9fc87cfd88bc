package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// proxyNoun returns the word for the proxies of runs: sidecar, the name of the proxies of
// nodes, or, if runs have several, proxy.
func proxyNoun(runs ...*record.Run) string {
	noun := ""
	for _, r := range runs {
		of := record.SidecarDataplane
		if r.Proxies != nil && !mixed(r) { // if there are both, figures of sidecars are only of sidecars
			of = r.Proxies.Name
		}
		if noun != "" && of != noun {
			return "proxy"
		}
		noun = of
	}
	return cmp.Or(noun, record.SidecarDataplane)
}

// plural returns the plural of a noun of proxyNoun.
func plural(noun string) string {
	if noun == "proxy" {
		return "proxies"
	}
	return noun + "s"
}

// ofProxies rewrites a text about sidecars for the proxies of the runs.
func ofProxies(text string, runs ...*record.Run) string {
	noun := proxyNoun(runs...)
	if noun == record.SidecarDataplane {
		return text
	}
	return record.OfProxies(text, noun, plural(noun))
}

// mixed reports whether some pods of a run had sidecars and others the proxies of their nodes.
func mixed(r *record.Run) bool { return r.Proxies != nil && r.Proxies.Sidecars != nil }

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// proxies returns the number of proxies of a run that hold the configuration; nil if it
// is not known.
func proxies(r *record.Run) *float64 {
	switch {
	case r.Dataplane() == record.SidecarDataplane:
		return new(float64(r.PodCount()))
	case r.Proxies != nil:
		n := r.Proxies.Nodes
		if s := r.Proxies.Sidecars; s != nil {
			n += *s
		}
		if w := r.Proxies.Waypoints; w != nil && w.Ready != nil {
			n += *w.Ready
		}
		return new(float64(n))
	}
	return nil
}

// dataplaneKey identifies repeats of one data plane; see byDataplane.
type dataplaneKey struct {
	mode             string // without the data plane
	pods, services   int
	dataplane        string
	podsPerNode, add int // add distinguishes runs that differ otherwise
}

// dataplaneGroup is a group of completed runs of one data plane and one mode, of one size or of
// several.
type dataplaneGroup struct {
	key  dataplaneKey
	runs []*record.Run
}

// modeOf returns the mode of a run whatever its data plane. Scope has no meaning for
// proxies of nodes.
func modeOf(r *record.Run) string {
	return cmp.Or(r.ModeName(), fmt.Sprintf("mtls %s, authz %s", orAbsent(r.Environment.Knobs.MTLS), orAbsent(r.Environment.Knobs.Authz)))
}

// byDataplane groups the completed runs by mode, size and data plane, so that neighbours are
// comparable. It returns nil if all runs have sidecars. Without sizes, runs of all sizes
// are in one group.
func byDataplane(runs []record.Run, sizes bool) []dataplaneGroup {
	var differing []axis
	for _, a := range differingAxes(runs) {
		switch a.name {
		case "data plane":
		case "settings":
			a.value = otherSettings(runs)
			differing = append(differing, a)
		case "control plane":
			a.value = func(r *record.Run) string {
				c := r.Environment.ControlPlane
				c.ProxyVersion = "" // only sidecars have one
				return controlPlaneText(c)
			}
			differing = append(differing, a)
		default:
			differing = append(differing, a)
		}
	}
	around, others := surroundings(differing), map[string]int{}
	var all []dataplaneGroup
	for i := range runs {
		r := &runs[i]
		if r.Status != record.StatusCompleted {
			continue
		}
		if _, known := others[around(r)]; !known {
			others[around(r)] = len(others)
		}
		key := dataplaneKey{mode: modeOf(r), dataplane: r.Dataplane(), podsPerNode: r.Scenario.Mesh.PodsPerNode, add: others[around(r)]}
		if sizes {
			key.pods, key.services = r.PodCount(), r.ServiceCount()
		}
		at := slices.IndexFunc(all, func(p dataplaneGroup) bool { return p.key == key })
		if at < 0 {
			at, all = len(all), append(all, dataplaneGroup{key: key})
		}
		all[at].runs = append(all[at].runs, r)
	}
	if !slices.ContainsFunc(all, func(p dataplaneGroup) bool { return p.key.dataplane != record.SidecarDataplane }) {
		return nil
	}
	slices.SortStableFunc(all, func(a, b dataplaneGroup) int {
		return cmp.Or(strings.Compare(a.key.mode, b.key.mode), cmp.Compare(a.key.add, b.key.add), cmp.Compare(a.key.pods, b.key.pods), cmp.Compare(a.key.services, b.key.services),
			-strings.Compare(a.key.dataplane, b.key.dataplane), cmp.Compare(a.key.podsPerNode, b.key.podsPerNode))
	})
	return all
}

// otherSettings returns a function for a run's settings without those that all completed
// runs of its data plane share, because these belong to the data plane.
func otherSettings(runs []record.Run) func(*record.Run) string {
	shared := map[string]map[string]string{} // by data plane
	for i := range runs {
		r := &runs[i]
		own, of := r.Environment.ControlPlane.Settings, r.Dataplane()
		switch {
		case r.Status != record.StatusCompleted:
		case shared[of] == nil:
			shared[of] = maps.Clone(own)
			if own == nil {
				shared[of] = map[string]string{}
			}
		default:
			maps.DeleteFunc(shared[of], func(name, value string) bool { return own[name] != value })
		}
	}
	return func(r *record.Run) string {
		rest := maps.Clone(r.Environment.ControlPlane.Settings)
		maps.DeleteFunc(rest, func(name, value string) bool {
			is, ok := shared[r.Dataplane()][name]
			return ok && is == value
		})
		return settingsText(rest)
	}
}

// name returns the name of the data plane, with the pods per node if nodes have proxies.
func (p dataplaneGroup) name() string {
	if p.key.podsPerNode == 0 {
		return p.key.dataplane
	}
	return fmt.Sprintf("%s, %s per node", p.key.dataplane, output.Many(p.key.podsPerNode, "pod"))
}

// planeFigures are figures that mean the same in every data plane.
var planeFigures = []struct {
	head string
	figure
}{
	{"rollout time", rolloutTime},
	{"CPU time", need(record.PhaseRollout, "cpuSeconds")},
	{"cores, mean", need(record.PhaseRollout, "cores.mean")},
	{"memory, peak", need(record.PhaseRollout, "memoryBytes.peak")},
	{"memory, steady", need(record.PhaseSteady, "memoryBytes.mean")},
	{"certificates", figure{"latencies.certificate.count", certificatesOfRollout, tally}},
	{"bytes", figure{"xds.rates.rollout.bytesPerSecond", bytesOfRollout, bytes}},
	{"policy push, first", recorded("latencies.propagation.policy.first.p50", seconds)},
	{"policy push, last", recorded("latencies.propagation.policy.last.p50", seconds)},
	{"readiness push, first", recorded("latencies.propagation.endpointHealth.first.p50", seconds)},
	{"readiness push, last", recorded("latencies.propagation.endpointHealth.last.p50", seconds)},
}

// certificatesOfRollout returns the number of first certificates of pods, or of their
// identities on each node; nil if pods have both, because the distribution covers only
// sidecars.
func certificatesOfRollout(r *record.Run) *float64 {
	if l := r.Latencies.Certificate; l != nil && !mixed(r) {
		return new(float64(l.Count))
	}
	return nil
}

// bytesOfRollout returns the bytes of all responses in the rollout.
func bytesOfRollout(r *record.Run) *float64 {
	p := r.Phase(record.PhaseRollout)
	if r.XDS == nil || r.XDS.Rates == nil || r.XDS.Rates.Rollout == nil || r.XDS.Rates.Rollout.BytesPerSecond == nil || p == nil || p.Seconds == nil {
		return nil
	}
	return new(*r.XDS.Rates.Rollout.BytesPerSecond * *p.Seconds)
}

// dataplanes adds to a summary a comparison of the data planes, and the cost of one more
// pod and node in each, if runs have other data planes than sidecars.
func (d *document) dataplanes(runs []record.Run, warnings *warnings) {
	bySize := byDataplane(runs, true)
	if bySize == nil {
		return
	}
	t := table{Head: plain("data plane", "mode", "pods", "nodes", "proxies", "runs"), Left: 2}
	for _, f := range planeFigures {
		t.Head = append(t.Head, unmarked(f.head))
	}
	for _, p := range bySize {
		nodes := absent
		if first := p.runs[0].Proxies; first != nil {
			nodes = count(&first.Nodes)
		}
		row := plain(p.name(), p.key.mode, count(&p.key.pods), nodes, tally(proxies(p.runs[0])), count(new(len(p.runs))))
		for _, f := range planeFigures {
			cell := unmarked(rangeText(p.runs, f.figure))
			if cell.text != absent {
				cell.marks = warnings.markAll(p.runs, f.path)
			}
			row = append(row, cell)
		}
		t.Add(row...)
	}
	d.tables = append(d.tables, t)
	d.nodeCosts(byDataplane(runs, false), warnings)
	for _, text := range planeSentences(runs, warnings) {
		d.facts = append(d.facts, fact{"data planes", text})
	}
}

// planeAnswers returns planeSentences as paragraphs of a page.
func planeAnswers(runs []record.Run, warnings *warnings) [][]marked {
	var texts [][]marked
	for _, one := range planeSentences(runs, warnings) {
		texts = append(texts, []marked{{capital(one.text) + ".", one.marks}})
	}
	return texts
}

// termNodes counts the nodes that have a proxy.
var termNodes = term{"node", proxies, 1}

// nodeCosts adds the cost of one more pod, and of one more node, in each data plane, or
// why it is not known.
func (d *document) nodeCosts(all []dataplaneGroup, warnings *warnings) {
	perNode, most := 0, 0 // of most of the runs that have nodes with proxies
	for _, p := range all {
		if p.key.podsPerNode > 0 && len(p.runs) > most {
			perNode, most = p.key.podsPerNode, len(p.runs)
		}
	}
	t := table{Head: plain("data plane (95% interval)", "mode", "figure", "one more pod", fmt.Sprintf("one more node of %s", output.Many(perNode, "pod")), "one more node, as many pods"), Left: 3}
	for _, p := range all {
		if of := p.key.podsPerNode; of != 0 && of != perNode {
			continue // they separate nodes from pods, below
		}
		g := alike{runs: p.runs}
		missing := ""
		switch {
		case len(g.sizes()) < sizesNeeded:
			missing = fmt.Sprintf("%s, and at least %d are needed", output.Many(len(g.sizes()), "size"), sizesNeeded)
		case !g.repeated():
			missing = "every size was run once; --repeats 3"
		}
		if missing != "" {
			d.facts.add("one more node", fmt.Sprintf("cost unknown with %s, %s: %s", p.name(), p.key.mode, missing))
			continue
		}
		// The runs with other numbers of pods per node separate nodes from pods.
		wide := alike{}
		for _, other := range all {
			if other.key.mode == p.key.mode && other.key.dataplane == p.key.dataplane && other.key.add == p.key.add {
				wide.runs = append(wide.runs, other.runs...)
			}
		}
		separate := false
		for _, figure := range costFigures {
			if figure.itself {
				continue
			}
			cells := []marked{unmarked(p.name()), unmarked(p.key.mode), warnings.markAll(p.runs, figure.path).on(figure.name)}
			cells = append(cells, unmarked(g.oneMorePod(figure.figure)), unmarked(g.morePods(figure.figure, perNode)))
			node := "no proxy on it"
			if p.key.podsPerNode > 0 {
				node = absent
				if fit, err := wide.fit(figure.figure, []term{termPods, termNodes}); err == nil {
					separate = true
					node = interval(fit.Terms[2], 1, figure.print)
				}
			}
			t.Add(append(cells, unmarked(node))...)
		}
		if p.key.podsPerNode > 0 && !separate {
			d.facts.add("one more node", fmt.Sprintf("with %s, %s, pods and nodes grew together: add runs of the same sizes with another --pods-per-node to separate them", p.name(), p.key.mode))
		}
	}
	d.add(t)
}

// morePods formats the cost of this number of further pods in a figure.
func (g alike) morePods(f figure, pods int) string {
	cost, err := g.slope(f)
	switch {
	case errors.Is(err, capacity.ErrSquare):
		return "no slope"
	case err != nil:
		return absent
	}
	return interval(stats.Term{Value: cost.Value, Low: cost.Low, High: cost.High}, float64(pods), f.print)
}

// repeatsInSentence is the number of runs of a size that is needed to state a difference.
const repeatsInSentence = 3

// planeSentences states, for each mode, the effect of another data plane than sidecars at
// the largest size that both were run with, or what is missing for that.
func planeSentences(runs []record.Run, warnings *warnings) []marked {
	bySize, together := byDataplane(runs, true), byDataplane(runs, false)
	var texts []marked
	seen := map[string]bool{}
	for _, b := range slices.Backward(bySize) { // the largest first
		name := b.name() + b.key.mode + fmt.Sprint(b.key.add)
		if b.key.dataplane == record.SidecarDataplane || mixed(b.runs[0]) || seen[name] {
			continue
		}
		at := slices.IndexFunc(bySize, func(a dataplaneGroup) bool {
			return a.key.dataplane == record.SidecarDataplane && a.key.mode == b.key.mode && a.key.add == b.key.add && a.key.pods == b.key.pods && a.key.services == b.key.services
		})
		if at < 0 {
			continue
		}
		seen[name] = true
		texts = append(texts, planeSentence(bySize[at], b, together, warnings))
	}
	slices.Reverse(texts)
	if texts == nil && bySize != nil {
		return plain("not compared: no size and mode has completed runs with sidecars and with another data plane for all pods")
	}
	return texts
}

// planeSentence compares runs with sidecars, a, with those of another data plane, at one size.
func planeSentence(a, b dataplaneGroup, together []dataplaneGroup, warnings *warnings) marked {
	about := fmt.Sprintf("%s, %s, %s", output.Many(a.key.pods, "pod"), a.key.mode, b.name())
	if least := min(len(a.runs), len(b.runs)); least < repeatsInSentence {
		return unmarked(fmt.Sprintf("no statement for %s: %s with sidecars and %d with %s, and %d of each are needed: --repeats %d",
			about, output.Many(len(a.runs), "run"), len(b.runs), b.key.dataplane, repeatsInSentence, repeatsInSentence))
	}
	both := slices.Concat(a.runs, b.runs)
	if slices.ContainsFunc(both, short) {
		return unmarked(fmt.Sprintf("no statement for %s: the control plane had fewer processors than it would have used, so pushes merged and its CPU time is too low", about))
	}
	var paths []string
	part := func(f figure) string {
		x, y := logsOf(a.runs, f.value), logsOf(b.runs, f.value)
		d, err := stats.Welch(x, y, relativeResolution, confidence)
		if err != nil || len(x) < len(a.runs) || len(y) < len(b.runs) {
			return ""
		}
		paths = append(paths, f.path)
		ratio := fmt.Sprintf("%.2g times, %.2g to %.2g", math.Exp(d.Value), math.Exp(d.Low), math.Exp(d.High))
		if d.Low <= 0 && d.High >= 0 {
			ratio = "no significant difference"
		}
		return fmt.Sprintf("%s in place of %s (%s)", f.print(&spread(b.runs, f.value).mean), f.print(&spread(a.runs, f.value).mean), ratio)
	}
	var parts []string
	for _, one := range []struct {
		of   figure
		noun string
	}{{need(record.PhaseRollout, "cpuSeconds"), "of CPU time for the rollout"}, {need(record.PhaseRollout, "memoryBytes.peak"), "of memory at its peak"}} {
		if text := part(one.of); text != "" {
			parts = append(parts, strings.Replace(text, " in place of", " "+one.noun+" in place of", 1))
		}
	}
	if parts == nil {
		return unmarked(fmt.Sprintf("no statement for %s: CPU time and memory were not measured in every run", about))
	}
	first := b.runs[0]
	text := fmt.Sprintf("with %s and %s (%s), %s needed %s with %s in place of sidecars", output.Many(a.key.pods, "pod"), b.nodesText(), a.key.mode,
		planeName(first.Environment.ControlPlane), listed(parts), plural(proxyNoun(first)))
	if x, y := certificatesOfRollout(a.runs[0]), certificatesOfRollout(first); x != nil && y != nil {
		text += fmt.Sprintf(", and issued %s certificates in place of %s", tally(&spread(b.runs, certificatesOfRollout).mean), tally(&spread(a.runs, certificatesOfRollout).mean))
	}
	if cost := slopesText(a, b, together); cost != "" {
		text += "; " + cost
	}
	text += fmt.Sprintf(". Limits: means and 95%% intervals of %d and %d runs on one machine (%s), %s, simulated proxies; without traffic, waypoints and what proxies themselves need",
		len(a.runs), len(b.runs), output.Many(first.Environment.CPUs, "processor"), output.Many(a.key.services, "service"))
	return warnings.markAll(both, paths...).on(text)
}

// nodesText describes the nodes of runs of one size.
func (p dataplaneGroup) nodesText() string {
	if first := p.runs[0].Proxies; first != nil {
		return output.Many(first.Nodes, "node")
	}
	return p.name()
}

// slopesText states the processor time of one more pod in both data planes; "" if it is
// not known for both.
func slopesText(a, b dataplaneGroup, together []dataplaneGroup) string {
	var texts []string
	for _, p := range []dataplaneGroup{a, b} {
		p.key.pods, p.key.services = 0, 0
		all := slices.IndexFunc(together, func(o dataplaneGroup) bool { return o.key == p.key })
		if all < 0 {
			return ""
		}
		cost, err := alike{runs: together[all].runs}.slope(need(record.PhaseRollout, "cpuSeconds"))
		if err != nil {
			return ""
		}
		texts = append(texts, fmt.Sprintf("%s (%s to %s)", seconds(&cost.Value), seconds(&cost.Low), seconds(&cost.High)))
	}
	return fmt.Sprintf("one more pod costs %s in place of %s of CPU time", texts[1], texts[0])
}

// relativeResolution is the best relative precision of a figure.
const relativeResolution = 1e-3

// logsOf returns the logarithms of the positive figures of runs.
func logsOf(runs []*record.Run, value func(*record.Run) *float64) []float64 {
	var logs []float64
	for _, r := range runs {
		if v := value(r); v != nil && *v > 0 {
			logs = append(logs, math.Log(*v))
		}
	}
	return logs
}

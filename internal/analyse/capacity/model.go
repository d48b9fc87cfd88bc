package capacity

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/record"
)

// Farthest is the largest ratio of a forecast mesh to the largest run without
// Options.Force.
const Farthest = 8

const (
	confidence  = 0.95 // of all intervals
	sizesNeeded = 3    // two always lie on a line
	// sizesUnrepeated is the number of sizes from which the spread can be estimated
	// without repeats: two more than a model has terms, of which there are at most three.
	sizesUnrepeated = 5
	grows           = 1.2 // ratio of configurations below which they count as equal, and are no separate term
)

// errNoModel is the error for a figure that no run has, or that no model fits.
var errNoModel = errors.New("the runs determine no model of it")

// point is a mesh as the models see it.
type point struct {
	pods          float64
	replicas      float64 // of the control plane, 1 or more
	configuration float64 // bytes that a proxy holds; 0 = not known
	response      float64 // the largest that a push sends as a whole, in the unit of responseOf; 0 = not known
	// proxies is the number of proxies with a stream: one for each pod, or one for each
	// node.
	proxies float64
}

// observation is the value of a figure in a run.
type observation struct {
	point
	value  float64
	spread float64 // how much more, or less, than others it varies; see spreads
}

// term is something that a figure grows with.
type term struct {
	name string
	of   func(point) float64
	// signed reports that the term's coefficient may be negative.
	signed bool
}

var (
	constant = term{"constant", func(point) float64 { return 1 }, false}
	// offset is the constant of memory and of processor time: see the package comment.
	offset = term{"constant", func(point) float64 { return 1 }, true}
	// idle is the constant of the sum over all replicas.
	idle = term{"constant of a replica", func(p point) float64 { return p.replicas }, false}
	pods = term{"pods", func(p point) float64 { return p.pods }, false}
	// nodes counts the nodes that have a proxy. It is a term only if the runs separate it
	// from pods.
	nodes = term{"nodes", func(p point) float64 { return p.proxies }, false}
	// configured is in bytes.
	configured = term{"pods x configuration", func(p point) float64 { return p.proxies * p.configuration }, false}
	// pairs is the work that each pod's arrival causes for every proxy, however little is
	// sent to each.
	pairs = term{"pods x pods", func(p point) float64 { return p.pods * p.proxies }, false}
	// served is the work of a replica for the proxies that it serves. Its work for the
	// whole mesh is in the other terms.
	served = term{"sidecars of a replica", func(p point) float64 { return p.proxies / p.replicas }, false}
	// again is the work for the whole mesh that each replica after the first repeats.
	again = term{"further replicas x pods", func(p point) float64 { return (p.replicas - 1) * p.pods }, false}
)

// termsOf are the names of terms for other proxies than sidecars.
var termsOf = map[kind]map[string]string{
	ofNodes: {configured.name: "nodes x configuration", pairs.name: "pods x nodes", served.name: "proxies of a replica"},
	several: {configured.name: "proxies x configuration", served.name: "proxies of a replica"},
}

// heldBy states by whom the bytes of the term configured are held, by the names that it has.
var heldBy = map[string]string{
	configured.name:                   "all sidecars",
	termsOf[ofNodes][configured.name]: "all nodes' proxies",
	termsOf[several][configured.name]: "all proxies",
}

// figure is a figure that is forecast by a fit.
type figure struct {
	name string // its path in the record
	// from are the paths at which it is read: the first one that a run has; nil = at
	// name.
	from []string
	// terms are the terms of its model; shown is a further one if the runs show it.
	terms []term
	shown *term
	// divided is a further term if runs differ in their replicas.
	divided term
	// buffered reports that it contains the buffers of responses; see largeResponses.
	buffered bool
	// each reports that the figure is per replica, of the one with the largest value.
	each bool
	// good reports whether a run measured what the figure's name says; nil = every run
	// did. Other runs are used only if too few are left, with this text as a warning.
	good    func(*record.Run) bool
	warning string
	// merges reports that it grows more slowly than the bytes if pushes merge; see merge.
	merges bool
	// base is the path of the figure's value before the mesh existed, to which the models
	// add; "" = nothing.
	base string
}

// paths returns the paths at which the figure is read.
func (f figure) paths() []string {
	if f.from == nil {
		return []string{f.name}
	}
	return f.from
}

// of returns the figure of a run; nil if it was not measured.
func (f figure) of(r *record.Run) *float64 {
	for _, path := range f.paths() {
		if v := f.at(r, path); v != nil {
			return v
		}
	}
	return nil
}

// before returns the value of the figure without a mesh; nil if it was not measured.
// Proxies of nodes are connected before the mesh exists, so that the value then grows
// with the nodes; for them it is 0, and nothing of it is a constant.
func (f figure) before(r *record.Run) *float64 {
	if f.base == "" || kindOf(r) != sidecars {
		return new(0.0)
	}
	return f.at(r, f.base)
}

// at reads a figure of a control plane. A figure that is only recorded for all replicas
// together is divided by their number.
func (f figure) at(r *record.Run, path string) *float64 {
	all := r.Value(path)
	usage, ofUsage := strings.CutPrefix(path, "controlPlane.")
	if !f.each || r.Replicas == nil || all == nil || !ofUsage {
		return all
	}
	var most *float64
	for name := range r.Replicas.Each {
		if v := r.Value("replicas.each." + name + ".usage." + usage); v != nil && (most == nil || *v > *most) {
			most = v
		}
	}
	if most == nil {
		most = new(*all / pointOf(r).replicas)
	}
	return most
}

// unit returns the figure's unit, as plans print it.
func (f figure) unit() string {
	if known, _ := record.FigureAt(f.paths()[0]); known.Unit == record.UnitBytes {
		return bytesUnit
	}
	return secondsUnit
}

var (
	memoryTerms    = []term{offset, pods}
	coresTerms     = []term{idle, pods}
	processorTerms = []term{pods, configured}
)

var figures = []figure{
	{
		name: liveHeap, terms: memoryTerms, shown: &configured, divided: served, each: true,
		from: []string{"controlPlane.steady.heapBytes.collected", "controlPlane.steady.heapBytes.mean"},
		base: "controlPlane.baseline.heapBytes.mean",
		good: collected,
		warning: "garbage was not collected twice after steady, so that what was held on its way during the rollout may be in it: " +
			"runs of a scaler that asks for that do not have it",
	},
	peakMemory(steadyMemory),
	peakMemory(rolloutMemory),
	{
		name: rolloutCPU, terms: processorTerms, shown: &offset, divided: again,
		good: calm, merges: true,
		warning: "saturated during the rollout, or it is not known whether: pushes that wait are merged, so that more processors would use more processor time",
	},
}

// peakMemory returns the figure at a path for the peak memory of one replica.
func peakMemory(path string) figure {
	return figure{name: path, terms: memoryTerms, shown: &configured, divided: served, buffered: true, each: true, base: emptyMemory}
}

// collected reports whether the live heap was measured by garbage collections after the
// steady phase. Otherwise live heap is the result of the last collection, and changes
// with every one.
func collected(r *record.Run) bool {
	return r.Value("controlPlane.steady.heapBytes.collected") != nil
}

// Names of figures that are used beyond their own forecast.
const (
	liveHeap      = "controlPlane.steady.heapBytes"
	steadyMemory  = "controlPlane.steady.memoryBytes.peak"
	rolloutMemory = "controlPlane.rollout.memoryBytes.peak"
	rolloutCPU    = "controlPlane.rollout.cpuSeconds"
	rolloutTime   = "phases.rollout.seconds"
	emptyMemory   = "controlPlane.baseline.memoryBytes.mean"
	restCores     = "controlPlane.steady.cores.mean"

	bytesUnit   = "bytes"
	secondsUnit = "s"
)

// configurationOf returns the bytes that a proxy of the run held, on average, or where there are several kinds what all of them held, for each pod;
// 0 if that is not known.
func configurationOf(r *record.Run) float64 {
	if r.XDS == nil {
		return 0
	}
	most := meanOf(r.XDS.ConfigurationBytes)
	if kindOf(r) != several {
		return most
	}
	// In a mesh with sidecars these are what XDS has, and else the proxies of nodes.
	sum, known := 0.0, true
	add := func(proxies int, mean float64) {
		sum, known = sum+float64(proxies)*mean, known && (proxies == 0 || mean > 0)
	}
	if of := r.Proxies.Sidecars; of != nil {
		add(*of, most)
		most = meanOf(r.Proxies.ConfigurationBytes)
	}
	add(r.Proxies.Nodes, most)
	if w := r.Proxies.Waypoints; w != nil && w.Ready != nil {
		add(*w.Ready, meanOf(w.ConfigurationBytes))
	}
	if !known {
		return 0
	}
	return sum / float64(r.PodCount())
}

// meanOf returns the mean of what was held; 0 if that is not known.
func meanOf(held *record.ConfigurationBytes) float64 {
	if held == nil || held.Mean == nil {
		return 0
	}
	return *held.Mean
}

func pointOf(r *record.Run) point {
	p := point{pods: float64(r.PodCount()), replicas: float64(max(1, r.Environment.ControlPlane.Replicas)), configuration: configurationOf(r), response: largestResponse(r)}
	if p.proxies = p.pods; kindOf(r) == ofNodes {
		p.proxies = float64(r.Proxies.Nodes)
	}
	return p
}

// size returns the part of a point that repeats of a run have in common.
func (p point) size() point { return point{pods: p.pods, replicas: p.replicas, proxies: p.proxies} }

// separate reports whether nodes did not grow in proportion to pods, so that both can be
// terms.
func separate(seen []point) bool {
	last := seen[len(seen)-1]
	return slices.ContainsFunc(seen, func(p point) bool { return math.Abs(p.proxies-p.pods*last.proxies/last.pods) > 1 })
}

// fitted is a model with its coefficients.
type fitted struct {
	terms []term
	stats.Fit
	scatter
	// before is the model with the terms that were left out because they had a negative
	// cost; nil = none was.
	before *fitted
}

// sizes returns the number of sizes that a model is fitted to; they differ in pods,
// replicas or nodes.
func (m fitted) sizes() int { return m.freedom + len(m.terms) }

func (m fitted) at(p point) float64 { return m.At(row(m.terms, p)) }

func row(terms []term, p point) []float64 {
	values := make([]float64, len(terms))
	for i, t := range terms {
		values[i] = t.of(p)
	}
	return values
}

// model fits a figure's terms to observations. Configuration that does not grow is part
// of the cost of a pod, and then pairs can be a term; if configuration grows, it does so
// with the services and therefore about as pairs do. A term with a negative cost is left
// out, and so is an optional one whose interval contains zero; but a constant is kept,
// too, if sizes deviate from the line without it.
func (f figure) model(seen []observation) (fitted, error) {
	spreads(seen)
	terms, grows := slices.Clone(f.terms), configurationGrows(seen)
	if !slices.ContainsFunc(terms, func(t term) bool { return t.name == configured.name }) && separate(points(seen)) {
		terms = append(terms, nodes)
	}
	if at := slices.IndexFunc(terms, func(t term) bool { return t.name == configured.name }); at >= 0 && !grows {
		if slices.ContainsFunc(seen, func(o observation) bool { return o.configuration == 0 }) {
			terms = slices.Delete(terms, at, at+1) // nobody knows whether it grows
		} else {
			terms[at], f.shown = pairs, nil // one curve is all that a few sizes can show
		}
	}
	if f.divided.of != nil && slices.ContainsFunc(seen, func(o observation) bool { return o.replicas != seen[0].replicas }) {
		terms = append(terms, f.divided)
	}
	if f.buffered && showsBuffers(seen) {
		terms = append(terms, largeResponses)
	}
	if f.shown != nil && (f.shown.name != configured.name || grows) {
		at := len(terms)
		if f.shown.signed {
			at = 0 // constants are read first
		}
		without, err := fit(terms, seen)
		m, errShown := fit(slices.Insert(slices.Clone(terms), at, *f.shown), seen)
		missed := err == nil && without.astray
		if errShown == nil && m.impossible() < 0 && (f.shown.signed && missed && m.freedom >= 1 || m.shows(at, missed)) {
			return m, nil
		}
	}
	var before *fitted
	for len(terms) > 0 {
		m, err := fit(terms, seen)
		if errors.Is(err, stats.ErrTooFew) || errors.Is(err, stats.ErrCollinear) {
			terms = terms[:len(terms)-1]
			continue
		}
		if err != nil {
			return fitted{}, errNoModel
		}
		at := m.impossible()
		if at < 0 {
			m.before = before
			return m, nil
		}
		if before == nil {
			before = &m
		}
		terms = slices.Delete(slices.Clone(terms), at, at+1)
	}
	return fitted{}, errNoModel
}

// impossible returns the index of the last term whose coefficient has an impossible sign;
// -1 if there is none.
func (m fitted) impossible() int {
	for i := len(m.terms) - 1; i >= 0; i-- {
		if m.Terms[i].Value < 0 && !m.terms[i].signed {
			return i
		}
	}
	return -1
}

// fit fits terms to observations.
func fit(terms []term, seen []observation) (fitted, error) {
	var x [][]float64
	var y, spread []float64
	for _, o := range seen {
		x, y, spread = append(x, row(terms, o.point)), append(y, o.value), append(spread, o.spread)
	}
	least, err := stats.LeastSquaresRelative(x, y, spread, confidence)
	if err != nil {
		return fitted{}, err
	}
	m := fitted{terms: terms, Fit: least}
	residuals := make([]residual, len(seen))
	for i, o := range seen {
		residuals[i] = residual{o.size(), (o.value/m.at(o.point) - 1) / o.spread}
	}
	m.scatter = scattered(residuals, len(terms))
	return m, nil
}

// forecast returns the expected value of one more run of a mesh, with its prediction
// interval.
func (m fitted) forecast(p point) estimate {
	value := max(0, m.at(p)) // below the smallest size a line may be negative
	if m.Spare < 1 {
		return estimate{value: value}
	}
	half := m.half(m.Fit, row(m.terms, p))
	e := around(value, half)
	if b := m.before; b != nil && b.Spare > 0 {
		// Setting a negative term to zero moved the forecast in one direction. The term
		// may have a positive cost, so the interval is extended in that direction.
		at, half := b.at(p), b.half(b.Fit, row(b.terms, p))
		if value > at {
			e.high = max(e.high, at+half)
		} else {
			e.low = max(0, min(e.low, at-half))
		}
	}
	return e
}

// parts returns the model in printable form.
func (m fitted) parts(of kind) []Part {
	var parts []Part
	for i, t := range m.terms {
		parts = append(parts, Part{cmp.Or(termsOf[of][t.name], t.name), m.Terms[i].Value})
	}
	return parts
}

// points returns the points of observations.
func points(seen []observation) []point {
	var all []point
	for _, o := range seen {
		all = append(all, o.point)
	}
	return all
}

// prior is the weight of the repeats of all sizes together, in degrees of freedom, added
// to those of one size.
const prior = 8

// spreads gives each observation the spread of its size's repeats: some sizes vary ten
// times as much as others, such as those at which pushes begin to queue. Few repeats
// determine it badly, so each size's variance is moderated by that of all (Smyth,
// Statistical Applications in Genetics and Molecular Biology 3, 2004).
func spreads(seen []observation) {
	type group struct{ sum, squares, n float64 }
	groups := map[point]*group{}
	for _, o := range seen {
		g := groups[o.size()]
		if g == nil {
			g = &group{}
			groups[o.size()] = g
		}
		g.sum, g.n = g.sum+o.value, g.n+1
	}
	squares, freedom := 0.0, 0.0
	for _, o := range seen {
		g := groups[o.size()]
		share := o.value*g.n/g.sum - 1
		g.squares += share * share
		squares += share * share
	}
	for _, g := range groups {
		freedom += g.n - 1
	}
	for i := range seen {
		seen[i].spread = 1
		if freedom > 0 && squares > exact {
			g, all := groups[seen[i].size()], squares/freedom
			seen[i].spread = math.Sqrt((prior*all + g.squares) / (prior + g.n - 1) / all)
		}
	}
}

// exact is the square of a relative deviation that is rounding, not noise.
const exact = 1e-20

// estimate is a forecast with its interval, if that is known.
type estimate struct {
	value, low, high float64
	bounded          bool
}

// around returns an estimate with a symmetric interval that does not go below 0.
func around(value, half float64) estimate {
	return estimate{value, max(0, value-half), value + half, true}
}

// plus adds a known quantity to the estimate.
func (e estimate) plus(known float64) estimate {
	return estimate{e.value + known, e.low + known, e.high + known, e.bounded}
}

// times multiplies the estimate by n.
func (e estimate) times(n float64) estimate {
	return estimate{e.value * n, e.low * n, e.high * n, e.bounded}
}

// bounds returns the estimate as a plan has it.
func (e estimate) bounds() *Bounds {
	b := &Bounds{Forecast: e.value}
	if e.bounded {
		b.Low, b.High = &e.low, &e.high
	}
	return b
}

// upper returns the upper end of the estimate, which is the safe side; the value if there
// is no interval.
func (e estimate) upper() float64 {
	if e.bounded {
		return e.high
	}
	return e.value
}

// lower returns the lower end of the estimate; the value if there is no interval.
func (e estimate) lower() float64 {
	if e.bounded {
		return e.low
	}
	return e.value
}

func configurationGrows(seen []observation) bool {
	least, most := math.Inf(1), 0.0
	for _, p := range seen {
		least, most = min(least, p.configuration), max(most, p.configuration)
	}
	return least > 0 && most > grows*least
}

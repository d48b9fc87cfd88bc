package capacity

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Work is the work of the control plane while the planned mesh is rolled out, and the
// processor time of each part of it. Unlike other figures it is not fitted to sizes:
// pushes are simulated from the arrival of pods, and the cost of each part is fitted to
// the phases of all runs.
type Work struct {
	Rounds     int `json:"rounds"`     // in which changes are pushed, simulated
	FullRounds int `json:"fullRounds"` // of these, in which more than endpoints is pushed
	// Parts are pods, certificates, pushes and bytes, as far as the runs distinguish them
	// from each other, and the usage at rest.
	Parts []WorkPart `json:"parts"`
	// CPUSeconds is the sum of the parts, in seconds, with the 95 % prediction interval
	// for one more run; Measured and Error have the same meaning as in a Figure.
	CPUSeconds Bounds   `json:"cpuSeconds"`
	Measured   *float64 `json:"measured"`
	Error      *float64 `json:"error"`
	// Simulated compares the pushes in the rollouts of the runs with the simulated ones.
	Simulated []SimulatedPushes `json:"simulated"`
}

// WorkPart is a kind of work.
type WorkPart struct {
	Name  string  `json:"name"`
	Count float64 `json:"count"` // of it in the rollout of the planned mesh
	Each  Bounds  `json:"each"`  // processor time of one, in seconds, with its 95 % interval, which is not below 0
	Share float64 `json:"share"` // of CPUSeconds
}

// SimulatedPushes compares the simulated and the measured pushes in the rollout of one
// run.
type SimulatedPushes struct {
	Pods      int     `json:"pods"`
	Measured  float64 `json:"measured"` // responses, by the control plane's own count
	Simulated float64 `json:"simulated"`
}

// unlike is the tolerated relative difference between simulated and measured pushes of a
// run, in addition to the pushes of one round: a round at the end of the rollout may be
// in only one of the counts. A larger difference means that the run's pushes do not
// follow from the arrival of its pods.
const unlike = 0.25

// amounts are the quantities of each part in a phase.
type amounts struct{ pods, certificates, pushes, bytes float64 }

// part is a kind of work.
type part struct {
	name  string
	of    func(amounts) float64
	phase record.PhaseName // in which it is separate from the others; "" = in the rollout
}

// Names of parts. restPart is measured, not fitted.
const (
	podsPart   = "pods started"
	pushesPart = "pushes"
	bytesPart  = "bytes pushed"
	restPart   = "seconds at rest"
)

// workParts are the parts whose costs are fitted.
var workParts = []part{
	{podsPart, func(a amounts) float64 { return a.pods }, ""},
	{pushesPart, func(a amounts) float64 { return a.pushes }, ""},
	{"certificates", func(a amounts) float64 { return a.certificates }, record.PhaseStorm},
	{bytesPart, func(a amounts) float64 { return a.bytes }, ""},
}

// wholePods is the only part if the runs do not distinguish pods from pushes.
var wholePods = []part{{"pods started, with their pushes", func(a amounts) float64 { return a.pods }, ""}}

// unlikePod is the tolerated relative difference between the pushes per pod of a run and
// of the planned mesh if a pod is counted with its pushes.
const unlikePod = 0.5

// ofWork reports whether a term is a part of the work.
func ofWork(term string) bool {
	return term == restPart || hasPart(workParts, term) || hasPart(wholePods, term)
}

// phaseWork is the processor time of a phase, without the usage at rest, with the amounts
// of each part.
type phaseWork struct {
	run   int // which one it is of
	phase record.PhaseName
	amounts
	cpuSeconds float64
}

// workPhases are the phases whose work consists of the parts.
var workPhases = []record.PhaseName{record.PhaseRollout, record.PhaseChange, record.PhaseStorm}

// ofParts reports whether the work of a phase of a run consists of the parts. A change phase does if its
// changes are pushed as a rollout's are: endpoints that changed, and listeners and routes as a whole. A mesh-wide
// change sends all clusters and endpoints in addition. istiod has them in its cache, so that their bytes cost less
// (docs/results/forecasts.md). Changes of policies concern few sidecars, and those of metadata none.
// With churn, pods start in the phase, too.
func ofParts(phase record.PhaseName, r *record.Run) bool {
	if phase != record.PhaseChange {
		return slices.Contains(workPhases, phase)
	}
	kind := r.Scenario.Load.Changes.Kind
	return r.Scenario.Load.Churn == 0 && (kind == scenario.EndpointChange || kind == scenario.RouteChange)
}

// meanPresent is the average share of the pods that exist during a rollout, and so the
// share of the usage at rest with all of them.
const meanPresent = 0.5

// leastWork is the processor time, in seconds, below which a phase cannot be
// distinguished from a control plane at rest.
const leastWork = 0.2

// restOf returns the cores that the control plane uses at rest in a phase that is slowed
// down as the rollout is; nil = not known. One second of the modelled machine is K real
// seconds in such a phase, in which the control plane's own timers use K times as much.
// Steady may not be slowed down.
func restOf(r *record.Run) *float64 {
	rest := r.Value(restCores)
	if rest == nil {
		return nil
	}
	return new(*rest * r.SlowdownIn(record.PhaseRollout) / r.SlowdownIn(record.PhaseSteady))
}

// workOf returns the work of the phases of a run that were not saturated.
func workOf(r *record.Run) []phaseWork {
	rest := restOf(r)
	if rest == nil || r.Own == nil || r.Replicas != nil {
		return nil
	}
	var all []phaseWork
	for _, phase := range r.Phases {
		if !ofParts(phase.Name, r) {
			continue
		}
		at := func(path string) *float64 { return r.Value(fmt.Sprintf(path, phase.Name)) }
		cpu, saturation, rate := at("controlPlane.%s.cpuSeconds"), at("controlPlane.%s.saturation"), at("xds.rates.%s.bytesPerSecond")
		own := *r.Own.At(phase.Name)
		if cpu == nil || saturation == nil || *saturation > record.Saturated || rate == nil || own == nil || phase.Seconds == nil {
			continue
		}
		pods, present := 0.0, 1.0
		if phase.Name == record.PhaseRollout {
			pods, present = float64(r.PodCount()), meanPresent
		}
		w := phaseWork{
			0, phase.Name,
			amounts{pods: pods, certificates: own[certificatesMetric], pushes: own[pushesMetric], bytes: *rate * *phase.Seconds},
			*cpu - present**rest**phase.Seconds,
		}
		if w.cpuSeconds >= leastWork {
			all = append(all, w)
		}
	}
	return all
}

// work forecasts the work of the target's rollout, part by part. The error states why
// that is not possible.
func (s *sample) work(t target, left []*record.Run) (*Work, error) {
	if kindOf(s.runs[0]) != sidecars {
		return nil, errors.New("its parts are separated for pods with sidecars only; with proxies of nodes the forecast of processor time is the fit to sizes alone")
	}
	if t.replicas > 1 || t.configuration == 0 {
		return nil, errors.New("want runs of one replica, whose configuration is known")
	}
	w := &Work{}
	var phases []phaseWork
	var each []float64
	var simulatedRuns []*record.Run
	var rounds []float64 // pushes of a round to all sidecars
	var rest []float64   // cores, for each pod
	var services [][]float64
	for _, r := range s.runs {
		of := workOf(r)
		at := slices.IndexFunc(of, func(w phaseWork) bool { return w.phase == record.PhaseRollout })
		if at < 0 || of[at].pushes == 0 || configurationOf(r) == 0 {
			continue
		}
		rollout, err := rolloutOf(r)
		if err != nil {
			return nil, err
		}
		counts, measured := rollout.Count(debounceOf(r)), of[at]
		simulatedRuns = append(simulatedRuns, r)
		simulated := float64(counts.Responses)
		w.Simulated = append(w.Simulated, SimulatedPushes{r.PodCount(), measured.pushes, simulated})
		if math.Abs(simulated-measured.pushes) > unlike*measured.pushes+float64(rollout.Round()) {
			return nil, fmt.Errorf("the pushes of the run of %d pods do not follow from when its pods came: %d were simulated, %.0f measured",
				r.PodCount(), counts.Responses, measured.pushes)
		}
		for i := range of {
			of[i].run = len(simulatedRuns)
		}
		phases, rest = append(phases, of...), append(rest, *restOf(r)/measured.pods)
		rounds = append(rounds, float64(rollout.Round()))
		each = append(each, (measured.bytes-measured.pods*configurationOf(r))/measured.pushes)
		services = append(services, []float64{1, float64(r.ServiceCount())})
	}
	if len(w.Simulated) == 0 {
		return nil, errors.New("no run has a rollout without saturation, as with --dilate, whose pushes and bytes are known")
	}
	if sizes := len(sizesOf(simulatedRuns)); sizes < sizesNeeded {
		return nil, fmt.Errorf("want runs of %d sizes whose rollout was not saturated and whose pushes and bytes are known, have %d", sizesNeeded, sizes)
	}
	planned, err := s.planned(t)
	if err != nil {
		return nil, err
	}
	counts := planned.Count(debounceOf(s.runs[len(s.runs)-1]))
	w.Rounds, w.FullRounds = counts.Rounds, counts.FullRounds
	pushes := pushesOf(w.Simulated, rounds, float64(counts.Responses), float64(planned.Round()))
	push := bytesOfPush(services, each, float64(t.services))
	need := amounts{pods: t.pods, certificates: t.pods, pushes: pushes.value}
	need.bytes = t.pods*t.configuration + need.pushes*push.value
	costs, err := fitWork(phases, need)
	if err != nil {
		return nil, err
	}
	costs.allowForAmounts(pushes, push)
	if costs.alike {
		s.warn(rolloutCPU, "the runs do not distinguish the cost of a push from that of its bytes, so that the interval is wide: run all sizes again with --change 1/s:route, or run more sizes")
	}
	atRest := meanPresent * t.pods * stat.Mean(rest, nil)
	w.sum(costs, s.elsewhere(costs.total.plus(atRest*planned.Seconds())), atRest, planned.Seconds())
	w.Measured = mean(left, func(r *record.Run) *float64 { return r.Value(rolloutCPU) })
	if w.Measured != nil && *w.Measured != 0 {
		w.Error = new(w.CPUSeconds.Forecast / *w.Measured - 1)
	}
	return w, nil
}

// pushesOf corrects the simulated pushes of a rollout by the measurements in runs; round,
// and rounds for the runs, are the pushes of one round to all sidecars. The simulation
// counts one round more than was measured if the last one is at the end of the rollout,
// and may be wrong by a share of all pushes. Runs of one size do not distinguish the two,
// and are corrected by a share, without an interval.
func pushesOf(seen []SimulatedPushes, rounds []float64, simulated, round float64) estimate {
	var x [][]float64
	var y []float64
	var measuredAll, simulatedAll float64
	for i, s := range seen {
		x, y = append(x, []float64{s.Simulated, rounds[i]}), append(y, s.Measured)
		measuredAll, simulatedAll = measuredAll+s.Measured, simulatedAll+s.Simulated
	}
	fit, err := stats.LeastSquaresRelative(x, y, nil, confidence)
	if err != nil || fit.Spare < 1 || fit.Terms[0].Value <= 0 {
		return estimate{value: measuredAll / simulatedAll * simulated}
	}
	row := []float64{simulated, round}
	return around(max(0, fit.At(row)), halfWidth(fit, row))
}

// bytesOfPush returns the mean size in bytes of a push, without the first configuration
// of a sidecar, in a mesh with the planned number of services. It grows with the
// services, because routes are sent completely.
func bytesOfPush(services [][]float64, each []float64, planned float64) estimate {
	fit, err := stats.LeastSquares(services, each, confidence)
	if err != nil || fit.Spare < 1 {
		return estimate{value: max(0, stat.Mean(each, nil))}
	}
	row := []float64{1, planned}
	return around(max(0, fit.At(row)), halfWidth(fit, row))
}

// workCosts holds the processor time of one unit of each part, and of all parts of the
// planned rollout together, in seconds.
type workCosts struct {
	stats.Fit
	used  []part
	need  amounts
	total estimate
	// alike means that the phases do not distinguish pushes from bytes, so that each may
	// cost nothing.
	alike bool
}

// fitWork fits the processor time of one unit of each part. Parts with a negative cost
// are left out. If the phases do not determine both pushes and bytes, it is the fit with
// one of them that has the smaller residuals. If pods are distinguished from neither, a
// pod is counted with its pushes if the planned mesh needs about as many per pod as the
// runs did: otherwise they grow differently, and one in place of both would forecast
// neither.
func fitWork(phases []phaseWork, need amounts) (workCosts, error) {
	known := slices.DeleteFunc(slices.Clone(workParts), func(p part) bool {
		return p.phase != "" && !slices.ContainsFunc(phases, func(w phaseWork) bool { return w.phase == p.phase })
	})
	all, errAll := fitPossible(known, phases, need)
	pushes, errPushes := fitPossible(without(known, bytesPart), phases, need)
	bytes, errBytes := fitPossible(without(known, pushesPart), phases, need)
	best := all
	switch {
	case errAll == nil:
	case errPushes == nil && (errBytes != nil || pushes.Sigma <= bytes.Sigma):
		best = pushes
	case errBytes == nil:
		best = bytes
	}
	if hasPart(best.used, podsPart) && (hasPart(best.used, pushesPart) || hasPart(best.used, bytesPart)) {
		if errPushes == nil && errBytes == nil {
			best.allowFor(pushes.total, bytes.total)
		}
		return best, nil
	}
	rollouts := slices.DeleteFunc(slices.Clone(phases), func(w phaseWork) bool { return w.phase != record.PhaseRollout })
	differ := slices.ContainsFunc(rollouts, func(w phaseWork) bool {
		return math.Abs(w.pushes/w.pods*need.pods/need.pushes-1) > unlikePod
	})
	if whole, err := fitPossible(wholePods, rollouts, need); !differ && err == nil {
		return whole, nil
	}
	return workCosts{}, errors.New("the phases of the runs do not tell what each part of the work costs: want more sizes, --change 1/s:route or --certificate-storm")
}

// fitPossible fits these parts without those with a negative cost. The error states that
// the phases do not determine the costs.
func fitPossible(parts []part, phases []phaseWork, need amounts) (workCosts, error) {
	for len(parts) > 0 {
		fit, err := fitParts(parts, phases)
		if err != nil {
			return workCosts{}, err
		}
		if fit.Spare < 1 {
			return workCosts{}, stats.ErrTooFew
		}
		negative := slices.IndexFunc(fit.Terms, func(t stats.Term) bool { return t.Value < 0 })
		if negative < 0 {
			c := workCosts{Fit: fit, used: parts, need: need}
			c.byRun(phases)
			return c, nil
		}
		parts = without(parts, parts[negative].name)
	}
	return workCosts{}, errNoModel
}

// byRun sets the intervals of the costs and of the total. The phases of one run have its
// machine and its moment in common, so that runs are resampled, and not phases: all is
// fitted again without each of the runs. There are too few runs to draw them with replacement: of eight, most draws
// lack a size. Student's t has as many degrees of freedom as there are runs less one. No
// interval is narrower than with independent phases, which is what is left where one run
// alone determines a part.
func (c *workCosts) byRun(phases []phaseWork) {
	row := workRow(c.used, c.need)
	value := c.At(row)
	var totals []float64
	each := make([][]float64, len(c.used))
	runs := runsOf(phases)
	for _, run := range runs {
		rest := slices.DeleteFunc(slices.Clone(phases), func(w phaseWork) bool { return w.run == run })
		fit, err := fitParts(c.used, rest)
		if err != nil {
			continue
		}
		totals = append(totals, fit.At(row))
		for i, term := range fit.Terms {
			each[i] = append(each[i], term.Value)
		}
	}
	freedom := min(len(runs)-1, c.Spare)
	t := stats.Student(confidence, freedom)
	c.Terms = slices.Clone(c.Terms)
	for i := range c.Terms {
		term := &c.Terms[i]
		half := max(term.High-term.Value, t*stats.JackknifeDeviation(each[i]))
		term.Low, term.High = term.Value-half, term.Value+half
	}
	half := max(halfWidth(c.Fit, row), t*math.Hypot(stats.JackknifeDeviation(totals), value*c.ofRuns(phases)))
	c.total = around(value, half)
}

// ofRuns returns by which share of the costs the rollout of one more run deviates from
// them: the standard deviation of those of the runs.
func (c *workCosts) ofRuns(phases []phaseWork) float64 {
	squares, n := 0.0, 0
	for _, w := range phases {
		if w.phase == record.PhaseRollout {
			off := w.cpuSeconds/c.At(workRow(c.used, w.amounts)) - 1
			squares, n = squares+off*off, n+1
		}
	}
	return max(c.Sigma, math.Sqrt(squares/float64(max(1, n-1))))
}

// runsOf returns the runs of phases, each once.
func runsOf(phases []phaseWork) []int {
	var runs []int
	for _, w := range phases {
		if !slices.Contains(runs, w.run) {
			runs = append(runs, w.run)
		}
	}
	return runs
}

// allowFor makes the interval contain both cases where pushes or bytes are left out: bytes cost nothing, or
// pushes cost nothing. Sizes alone hardly distinguish them, because a larger mesh has more of both, so that
// the interval of one case is too narrow.
func (c *workCosts) allowFor(pushes, bytes estimate) {
	if hasPart(c.used, pushesPart) && hasPart(c.used, bytesPart) {
		low := func(name string) float64 {
			return c.Terms[slices.IndexFunc(c.used, func(p part) bool { return p.name == name })].Low
		}
		c.alike = low(pushesPart) < 0 && low(bytesPart) < 0
		return
	}
	low, high := min(pushes.low, bytes.low), max(pushes.high, bytes.high)
	c.alike = low < c.total.low || high > c.total.high
	c.total.low, c.total.high = min(c.total.low, low), max(c.total.high, high)
}

// allowForAmounts extends the interval for the uncertainty of the forecast amounts:
// pushes, and bytes of a push.
func (c *workCosts) allowForAmounts(pushes, push estimate) {
	cost := func(name string) float64 {
		if at := slices.IndexFunc(c.used, func(p part) bool { return p.name == name }); at >= 0 {
			return c.Terms[at].Value
		}
		return 0
	}
	half := func(e estimate) float64 { return e.upper() - e.value }
	more := math.Hypot((cost(pushesPart)+cost(bytesPart)*push.value)*half(pushes), cost(bytesPart)*pushes.value*half(push))
	c.total.low = max(0, c.total.value-math.Hypot(c.total.value-c.total.low, more))
	c.total.high = c.total.value + math.Hypot(c.total.high-c.total.value, more)
}

// hasPart reports whether a part is among these.
func hasPart(parts []part, name string) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.name == name })
}

// without returns the parts except the one of this name.
func without(parts []part, name string) []part {
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return p.name == name })
}

// fitParts fits the costs of these parts to phases.
func fitParts(parts []part, phases []phaseWork) (stats.Fit, error) {
	var x [][]float64
	var y []float64
	for _, phase := range phases {
		x, y = append(x, workRow(parts, phase.amounts)), append(y, phase.cpuSeconds)
	}
	return stats.LeastSquaresRelative(x, y, nil, confidence)
}

// workRow returns the amounts of these parts.
func workRow(parts []part, a amounts) []float64 {
	var row []float64
	for _, p := range parts {
		row = append(row, p.of(a))
	}
	return row
}

// sum lists the parts of all CPU time, with the usage at rest for this number of seconds.
func (w *Work) sum(costs workCosts, all estimate, rest, seconds float64) {
	w.CPUSeconds = Bounds{all.value, &all.low, &all.high}
	add := func(name string, count float64, each Bounds) {
		w.Parts = append(w.Parts, WorkPart{name, count, each, each.Forecast * count / w.CPUSeconds.Forecast})
	}
	for i, p := range costs.used {
		cost := costs.Terms[i]
		low := max(0, cost.Low)
		if costs.alike && (p.name == pushesPart || p.name == bytesPart) {
			low = 0 // the other may be what costs something
		}
		add(p.name, p.of(costs.need), Bounds{cost.Value, &low, new(cost.High)})
	}
	if rest > 0 {
		add(restPart, seconds, Bounds{Forecast: rest})
	}
}

// forecast returns the work as the forecast of processor time.
func (w *Work) forecast() forecast {
	made := forecast{estimate: estimate{w.CPUSeconds.Forecast, *w.CPUSeconds.Low, *w.CPUSeconds.High, true}, good: true}
	for _, p := range w.Parts {
		made.parts = append(made.parts, Part{p.Name, p.Each.Forecast})
	}
	return made
}

// write writes what the rollout uses processor time for.
func (w *Work) write(d *output.Document) {
	table := output.Table{Head: []string{"work of the rollout", "count", "CPU time of one", "low", "high", "share"}}
	for _, p := range w.Parts {
		table.Add(p.Name, digits(p.Count), small(&p.Each.Forecast), small(p.Each.Low), small(p.Each.High), fmt.Sprintf("%.0f%%", 100*p.Share))
	}
	sum := fmt.Sprintf("All parts take %s of CPU time (%s to %s)", amount(secondsUnit, &w.CPUSeconds.Forecast), amount(secondsUnit, w.CPUSeconds.Low), amount(secondsUnit, w.CPUSeconds.High))
	if w.Measured != nil {
		sum += fmt.Sprintf(", measured %s (%s)", amount(secondsUnit, w.Measured), percent(w.Error))
	}
	grid(d, table)
	d.Paragraph(fmt.Sprintf("%s; changes are pushed in %s, of which %d push more than endpoints.", sum, output.Many(w.Rounds, "round"), w.FullRounds))
}

// small formats a time that may be far below a microsecond.
func small(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	if nano := *seconds * 1e9; math.Abs(nano) < 1e3 {
		return output.Digits(nano, 2) + "ns"
	}
	return amount(secondsUnit, seconds)
}

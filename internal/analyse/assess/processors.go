package assess

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

const (
	// coresSpread is the relative deviation of processor time, in reference processors, between runs of one mesh. coresMore is the additional
	// share that real sidecars needed in a cluster with a kubelet. Both are in docs/reading-results.md.
	coresSpread = 0.1
	coresMore   = 0.26
	// millicores is the step to which a request is rounded up.
	millicores = 50
)

// nodeSpeed returns the speed of production's nodes; 0, and why, where processor time of these runs cannot be compared with theirs.
func (f Facts) nodeSpeed(runs ...*record.Run) (speed float64, whyNot string) {
	nodes := f.Captured.NodeSpeed
	switch {
	case nodes == nil:
		return 0, "how fast production's nodes are is not known: --node-speed has what scaler calibrate --speed printed there"
	case f.share() > 0:
		return 0, f.onlyPart()
	}
	for _, r := range runs {
		switch here, known := r.Environment.Processor.Speed(); {
		case !known:
			return 0, "the speed of this machine is not known"
		case here.Work != nodes.Work:
			return 0, "the speed of this machine is not known in the unit of --node-speed"
		}
	}
	return nodes.Speed, ""
}

// decides reports whether a request has to cover the mean cores of a moment. It need not cover a short burst, such as after a restart. In the
// stages of an upgrade each version has one istiod, so that their cores are not those of one of several replicas.
func (f Facts) decides(m Moment) bool {
	if m.Cores == nil {
		return false
	}
	return m.Stage && f.Captured.Replicas <= 1 ||
		!m.Stage && slices.Contains([]record.PhaseName{record.PhaseRollout, record.PhaseSteady, record.PhaseChange, record.PhaseChurn}, record.PhaseName(m.Phase))
}

// limited reports whether the control plane waited for processors in a run, so that its cores are a lower bound.
func limited(r *record.Run) bool {
	return slices.ContainsFunc(r.Warnings, func(w record.Warning) bool {
		return (w.Reason == record.ReasonAtLimit || w.Reason == record.ReasonSaturated) && record.Within(w.About, "controlPlane")
	})
}

// processors compares the moment of the most cores with the processors that production requests, and states what to request. whyNot is that of
// nodeSpeed.
func (f Facts) processors(moments []Moment, whyNot string) (Check, []Setting) {
	c := Check{Name: "processors", Outcome: NotChecked, Text: whyNot}
	if whyNot != "" {
		return c, nil
	}
	var most *Moment
	for i, m := range moments {
		if f.decides(m) && (most == nil || *m.Cores > *most.Cores) {
			most = &moments[i]
		}
	}
	if most == nil {
		c.Text = "cores were not measured"
		return c, nil
	}
	low := *most.Cores * (1 - math.Hypot(coresSpread, capacity.AnotherKind))
	high := *most.Cores * (1 + coresMore) * (1 + math.Hypot(coresSpread, capacity.AnotherKindMore))
	need := fmt.Sprintf("istiod needs %s (%s to %s) cores of production's nodes on average, istiod %s in %s",
		output.Digits(*most.Cores, 2), output.Digits(low, 2), output.Digits(high, 2), most.Version, most.where())
	requested, known := f.cpu(f.Captured.Requests)
	if !known {
		c.Text = need + "; what it requests is not known"
		return c, nil
	}
	text := need + ", and requests no processors"
	if requested > 0 {
		text = fmt.Sprintf("%s, and requests %s", need, output.Digits(requested, 2))
	}
	switch {
	case low > requested:
		c.Outcome, c.Text = Needs, text
		return c, f.request(high, need)
	case slices.ContainsFunc(f.steps(), func(s namedRun) bool { return s.name == most.Step && limited(s.run) }):
		c.Text = text + "; it waited for processors here, so that it may need more"
	case high <= requested:
		c.Outcome, c.Text = Holds, text
	default:
		c.Text = text + ", which is within that interval"
	}
	return c, nil
}

// request sets a request of so many cores, and a limit that is not below it: the API server refuses pods that request more than their limit.
func (f Facts) request(cores float64, need string) []Setting {
	request := math.Ceil(cores*1000/millicores) * millicores
	value := fmt.Sprintf("%.0fm", request)
	set := []Setting{{Path: "resources.requests.cpu", Value: value, Why: need + "; the upper end"}}
	if limit, known := f.cpu(f.Captured.Limits); known && limit > 0 && limit*1000 < request {
		set = append(set, Setting{
			Path: "resources.limits.cpu", Value: value,
			Why: fmt.Sprintf("it is %s; pods that request more than their limit are refused", output.Digits(limit, 2)),
		})
	}
	return set
}

// cpu returns the number of processors among captured requests or limits, 0 where there is none; false where it is not known.
func (f Facts) cpu(of map[string]string) (processors float64, known bool) {
	text := of["cpu"]
	if text == "" {
		return 0, f.Captured.Installed
	}
	q, err := resource.ParseQuantity(text)
	return q.AsApproximateFloat64(), err == nil
}

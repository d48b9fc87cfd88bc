package assess

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

const (
	// coresSpread is by how much the processor time of one run may differ from that of others like it, in reference processors, and coresMore is
	// by how much more real sidecars may need, as measured in a cluster with a kubelet (both docs/reading-results.md).
	coresSpread = 0.1
	coresMore   = 0.26
	// millicores is what a request is rounded up to a multiple of.
	millicores = 50
)

// nodeSpeed is the speed of production's nodes; 0, and why, where processor time of the rehearsal cannot be compared with theirs.
func (f Facts) nodeSpeed() (speed float64, whyNot string) {
	nodes := f.Captured.NodeSpeed
	switch {
	case nodes == nil:
		return 0, "how fast production's nodes are is not known: --node-speed has what scaler calibrate --speed printed there"
	case f.share() > 0:
		return 0, f.onlyPart()
	}
	for _, r := range []*record.Run{f.From.Run, f.Onto.Run, f.Upgrade.Run} {
		if r == nil {
			continue
		}
		if here, known := r.Environment.Processor.Speed(); !known || here.Work != nodes.Work {
			return 0, "the speed of this machine is not known in the unit of --node-speed"
		}
	}
	return nodes.Speed, ""
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
		if m.Cores != nil && (most == nil || *m.Cores > *most.Cores) {
			most = &moments[i]
		}
	}
	if most == nil {
		c.Text = "cores were not measured"
		return c, nil
	}
	low, high := *most.Cores*(1-coresSpread), *most.Cores*(1+coresSpread)*(1+coresMore)
	need := fmt.Sprintf("istiod needs %s (%s to %s) cores of production's nodes on average, and %s in a second, istiod %s in %s",
		output.Digits(*most.Cores, 2), output.Digits(low, 2), output.Digits(high, 2), cores(most.PeakCores), most.Version, most.where())
	text := f.Captured.Requests["cpu"]
	quantity, err := resource.ParseQuantity(text)
	requested := quantity.AsApproximateFloat64()
	if err != nil || requested <= 0 {
		c.Text = need + "; what it requests is not known"
		return c, nil
	}
	if high <= requested {
		c.Outcome, c.Text = Holds, fmt.Sprintf("%s, and requests %s", need, text)
		return c, nil
	}
	request := fmt.Sprintf("%.0fm", math.Ceil(high*(1+capacity.DefaultHeadroom)*1000/millicores)*millicores)
	set := []Setting{{
		Path: "resources.requests.cpu", Value: request,
		Why: fmt.Sprintf("%s; the upper end with %s of headroom; it is %s", need, output.Percent(capacity.DefaultHeadroom), text),
	}}
	c.Outcome, c.Text = Needs, fmt.Sprintf("%s, and requests %s: on a node in full use it may get no more", need, text)
	return c, set
}

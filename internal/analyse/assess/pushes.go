package assess

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// bytesSpread is the share by which the mean size of pushes may exceed, or fall short of, the sizes that proxies of the replay hold, with
// the same configuration: names of pods and addresses of the replay have other lengths, and a history has four digits.
const bytesSpread = 0.05

// pushedTypes are the types of which sizes of pushes are compared, by the messages that istiod names them by. whole = istiod sends a proxy
// all that it holds of the type; of the others a push may have what changed alone (GenerateDeltas in pilot/pkg/xds of cds.go and eds.go,
// which lds.go and rds.go have not).
var pushedTypes = []struct {
	message, held string
	whole         bool
}{
	{"Listener", "LDS", true}, {"RouteConfiguration", "RDS", true}, {"Cluster", "CDS", false}, {"ClusterLoadAssignment", "EDS", false},
}

// Held is the size, in bytes, of the resources of one type that proxies hold. The proxies of nodes are not included.
type Held struct {
	Mean float64 // of all of them
	Most float64 // that one holds
}

// HeldOf returns what proxies hold, by type. A resource counts with its message, as istiod counts those that it pushes.
func HeldOf(c *record.Configuration) map[string]Held {
	all, proxies := map[string]Held{}, 0.0
	for _, proxy := range c.Sidecars {
		if proxy.Kind == record.OfZtunnel { // it holds none of pushedTypes
			continue
		}
		proxies++
		bytes := map[string]float64{}
		for _, i := range proxy.Resources {
			bytes[c.Resources[i].Type] += float64(len(c.Resources[i].Message))
		}
		for of, n := range bytes {
			all[of] = Held{Mean: all[of].Mean + n, Most: max(all[of].Most, n)}
		}
	}
	for of, h := range all {
		all[of] = Held{Mean: h.Mean / proxies, Most: h.Most}
	}
	return all
}

// bytes compares the sizes of production's pushes, of which each value is the mean of some minutes, with what proxies of the replay hold, by
// type. Production's lie above what any proxy holds where its configuration is larger. Of a type that is sent whole, they lie below the mean
// of all proxies throughout where it is smaller.
func (f Facts) bytes() Check {
	const figure = "bytesPerPush"
	c := Check{Name: "bytes of the model", Outcome: NotChecked}
	switch {
	case f.Captured.History == nil || !slices.ContainsFunc(f.Captured.History.Figures, func(o capture.Observed) bool { return o.Figure == figure }):
		c.Text = f.noHistory(figure)
		return c
	case f.share() > 0:
		c.Text = f.onlyPart()
		return c
	case f.Held == nil:
		c.Text = "the replay did not come to rest"
		return c
	}
	var same, other []string
	for _, of := range pushedTypes {
		used, held := f.Captured.Observed(figure, of.message), f.Held[of.held]
		if used == nil || held.Most == 0 {
			continue
		}
		text := fmt.Sprintf("%s %s (p50) to %s (most) in production, %s (mean) to %s (most) in the replay", of.held,
			output.Bytes(used.P50), output.Bytes(used.Max), output.Bytes(held.Mean), output.Bytes(held.Most))
		switch {
		case used.P50 > held.Most*(1+bytesSpread):
			other = append(other, text+", which is less")
		case of.whole && used.Max < held.Mean*(1-bytesSpread):
			other = append(other, text+", which is more")
		default:
			same = append(same, text)
		}
	}
	switch {
	case other != nil:
		c.Outcome, c.Text = Unknown, "the replay has another configuration than production had: bytes of a push "+strings.Join(other, "; ")
	case same == nil:
		c.Text = "the history and the replay have no type in common"
	default:
		c.Outcome, c.Text = Holds, fmt.Sprintf("bytes of a push in %s, with ±%s: %s", spanText(f.Captured.History), output.Percent(bytesSpread), strings.Join(same, "; "))
	}
	return c
}

// pushes compares the pushes that changes of endpoints at production's rate cause in the replay with production's pushes of endpoints. No
// verdict is made from it: production pushes endpoints for other reasons as well.
func (f Facts) pushes() Check {
	c := Check{Name: "pushes of the model", Outcome: NotChecked, Aside: true}
	used, made := f.Captured.Observed("pushes", "eds"), f.From.Run.Change
	rate := f.From.Run.Scenario.Load.Changes
	switch {
	case used == nil:
		c.Text = f.noHistory("pushes")
	case f.share() > 0:
		c.Text = f.onlyPart()
	case rate.PerSecond == 0:
		c.Text = "pushes follow from events, and the replay makes no changes: " + f.noRate()
	case made == nil || made.ResponsesPerChange == nil:
		c.Text = "the replay did not come so far"
	default:
		here := *made.ResponsesPerChange * float64(rate.PerSecond)
		c.Outcome = Holds
		c.Text = fmt.Sprintf("production made %s (p50) to %s (most) pushes of endpoints a second in %s, the replay %s with %s", output.Digits(used.P50, 2), output.Digits(used.Max, 2),
			spanText(f.Captured.History), output.Digits(here, 2), rate)
		switch {
		case here < used.P50:
			c.Outcome = Unknown
			c.Text += ": production pushes for more reasons than changes of endpoints"
		case here > used.Max:
			c.Text += ": the replay pushes more than production, so that its load is an upper bound"
		}
	}
	return c
}

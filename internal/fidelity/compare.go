package fidelity

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/fidelity/wiretap"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// tolerated is the largest difference, as a share, in the bytes of one resource.
const tolerated = 0.02

// compareRequests compares two sequences of requests, which result from this number of
// events. It counts equal ones in sameness, and records differences.
func (s differencesSeen) compareRequests(about string, both exchange, sameness *record.Sameness, events int) {
	if slices.Equal(both.requests[realSide], both.requests[simulated]) {
		sameness.Same += events
		if both.silent() {
			sameness.Silent += events
		}
		return
	}
	real, fake := trimCommon(both.requests[realSide], both.requests[simulated])
	s.add(record.Difference{About: about + " requests", Real: requestsText(real), Simulated: requestsText(fake), Explained: both.excuse()})
}

// trimCommon removes the common beginning and end of two sequences.
func trimCommon(a, b []string) (restA, restB []string) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}

// requestsText formats requests in one line, with long ones shortened.
func requestsText(requests []string) string {
	const most = 160
	var short []string
	for _, r := range requests {
		if len(r) > most {
			r = r[:most] + "…"
		}
		short = append(short, r)
	}
	return strings.Join(short, "; ")
}

// nodes compares the node descriptions of both first requests.
func (c *comparison) nodes(context.Context) (steps.Undo, error) {
	real, fake := c.streams(realSide)[0], c.streams(simulated)[0]
	c.seen.compareText("node: requests that carry it", fmt.Sprint(real.Nodes), fmt.Sprint(fake.Nodes))
	c.seen.compareText("node cluster", real.Node.Cluster, fake.Node.Cluster)
	c.seen.compareText("node fields", strings.Join(real.Node.Others, " "), strings.Join(fake.Node.Others, " "))
	keys := maps.Clone(real.Node.Metadata)
	maps.Copy(keys, fake.Node.Metadata)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		c.seen.compareMetadata("node metadata "+key, real.Node.Metadata[key], fake.Node.Metadata[key])
	}
	a, b := real.Messages[0].Bytes, fake.Messages[0].Bytes
	if !similarSizes(a, b) {
		c.seen.compareText("first request's bytes", fmt.Sprint(a), fmt.Sprint(b))
	}
	return nil, nil
}

// compareMetadata compares one value, an object by its members.
func (s differencesSeen) compareMetadata(about string, real, fake any) {
	a, isObject := real.(map[string]any)
	b, alsoObject := fake.(map[string]any)
	if !isObject || !alsoObject {
		s.compareText(about, asJSON(real), asJSON(fake))
		return
	}
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for key := range keys {
		s.compareText(about+"."+key, asJSON(a[key]), asJSON(b[key]))
	}
}

func (s differencesSeen) compareText(about, real, fake string) {
	if real != fake {
		s.add(record.Difference{About: about, Real: real, Simulated: fake})
	}
}

func oneSided(about string, side int, text string) record.Difference {
	d := record.Difference{About: about, Real: "-", Simulated: "-"}
	if side == realSide {
		d.Real = text
	} else {
		d.Simulated = text
	}
	return d
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// held compares the resources that both hold: the names as each of them reports, the
// bytes as they were received.
func (c *comparison) held(ctx context.Context) (map[string]record.HeldResources, error) {
	var own [2]map[wiretap.Key]string
	var passed [2]map[wiretap.Key]wiretap.Resource
	for side, s := range c.proxies {
		var err error
		if own[side], err = s.held(ctx); err != nil {
			return nil, fmt.Errorf("asking the %s what it holds: %w", c.sideName(side), err)
		}
		passed[side] = wiretap.Held(c.streams(side))
	}
	return c.seen.compareHeld(own, passed), nil
}

// compareHeld compares the resources that both report to hold, with the comparable part
// of each content, and what they were sent.
func (s differencesSeen) compareHeld(own [2]map[wiretap.Key]string, passed [2]map[wiretap.Key]wiretap.Resource) map[string]record.HeldResources {
	for side := range own {
		maps.DeleteFunc(own[side], func(k wiretap.Key, _ string) bool {
			_, sent := passed[side][k] // Envoy also reports the endpoints of clusters that have none by EDS
			return k.Type == convergence.EDS.String() && !sent
		})
		for k := range passed[side] {
			if _, ok := own[side][k]; !ok {
				s.add(oneSided("resource sent and not held", side, k.String()))
			}
		}
	}
	types := map[string]record.HeldResources{}
	for side, other := range [2]int{simulated, realSide} {
		for k, content := range own[side] {
			h := types[k.Type]
			theirs, common := own[other][k]
			if side == realSide {
				h.Real++
				h.RealBytes += passed[side][k].Bytes
				if common {
					h.Common++
					s.compareContent(k, [2]string{content, theirs}, passed)
				}
			} else {
				h.Simulated++
				h.SimulatedBytes += passed[side][k].Bytes
			}
			if !common {
				s.add(oneSided("resource held by one alone", side, k.String()))
			}
			types[k.Type] = h
		}
	}
	return types
}

// compareContent compares the content of one resource.
func (s differencesSeen) compareContent(k wiretap.Key, says [2]string, passed [2]map[wiretap.Key]wiretap.Resource) {
	if says[realSide] != says[simulated] {
		s.add(record.Difference{About: "content of " + k.String(), Real: says[realSide], Simulated: says[simulated]})
	}
	a, b := passed[realSide][k], passed[simulated][k]
	if slices.Contains(ztunnelTypes, k.Type) && a.Digest != b.Digest { // each ztunnel is sent the same
		s.add(record.Difference{About: "digest of " + k.String(), Real: fmt.Sprintf("%x", a.Digest), Simulated: fmt.Sprintf("%x", b.Digest)})
	}
	if !similarSizes(a.Bytes, b.Bytes) {
		s.add(record.Difference{About: "bytes of " + k.String(), Real: fmt.Sprint(a.Bytes), Simulated: fmt.Sprint(b.Bytes)})
	}
}

// similarSizes reports whether two sizes differ by no more than is tolerated.
func similarSizes(a, b int) bool {
	return float64(max(a, b)-min(a, b)) <= tolerated*float64(max(a, b))
}

// differencesSeen counts equal differences.
type differencesSeen map[record.Difference]int

func (s differencesSeen) add(d record.Difference) { s[d]++ }

// explained returns all differences, sorted, with the known explanation of each.
func (s differencesSeen) explained() []record.Difference {
	all := []record.Difference{}
	for d, count := range s {
		d.Count, d.Explained = count, cmp.Or(d.Explained, explain(d))
		all = append(all, d)
	}
	slices.SortFunc(all, byAbout)
	return all
}

func byAbout(a, b record.Difference) int {
	return cmp.Or(strings.Compare(a.About, b.About), strings.Compare(a.Real, b.Real), strings.Compare(a.Simulated, b.Simulated))
}

// contentText formats the part of a resource's content that can be compared: the
// endpoints of a load assignment with their health, the domains of a route configuration.
func contentText(r convergence.Key, content *convergence.Content) string {
	var words []string
	switch {
	case content == nil:
	case r.Type == convergence.EDS:
		for addr, health := range content.Endpoints {
			words = append(words, addr.String()+" "+health.String())
		}
	case r.Type == convergence.RDS:
		words = slices.Clone(content.Members)
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ", ")
}

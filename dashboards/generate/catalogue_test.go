package main

import (
	"regexp"
	"strings"
	"testing"
)

// figurePath is a path of a record in a text; own.PHASE has names of each control plane's,
// which are no figures of the catalogue.
var figurePath = regexp.MustCompile(`\b(?:arrival|certificates|change|churn|cluster|controlPlane|faults|instrument|latencies|pods|sidecars|xds)(?:\.[A-Za-z]+)+`)

// A panel takes what it shows of a record from the catalogue of figures: a path in its text that
// it does not state as its figure would stay when the figure is renamed.
func TestPanelsTakeFiguresFromTheCatalogue(t *testing.T) {
	stated := 0
	for _, b := range boards() {
		for _, r := range b.rows {
			for _, p := range r.panels {
				stated += len(p.what.figures)
				about := strings.TrimSuffix(p.about, p.what.inRecord())
				if len(p.what.figures) > 0 && about == p.about {
					t.Errorf("%s: the description does not end with %q", p.title, p.what.inRecord())
				}
				for _, path := range figurePath.FindAllString(about, -1) {
					if path != "sidecars.real.count" { // what was asked for, and so no figure
						t.Errorf("%s: the text has %s, which is to be stated by figures(), rateOf() or shareOf()", p.title, path)
					}
				}
			}
		}
	}
	if stated == 0 {
		t.Error("no panel states a figure")
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		name string
		what shown
		want string
	}{
		{"cores of a usage", figures("controlPlane.PHASE.cores"), "suffix: cores"},
		{"a latency", figures("latencies.push.KIND"), "s"},
		{"counts", figures("pods.created", "pods.ready"), "short"},
		{"growth of counts", rateOf("xds.acks"), "cps"},
		{"growth of bytes", rateOf("xds.bytes.TYPE"), "binBps"},
		{"a share", shareOf("xds.wastedResponses"), "percentunit"},
	} {
		if c.what.unit != c.want {
			t.Errorf("%s: unit %q, want %q", c.name, c.what.unit, c.want)
		}
	}
}

func TestWhatNoPanelShows(t *testing.T) {
	for name, show := range map[string]func() shown{
		"no figure":           func() shown { return figures("latencies.nothing") },
		"two units":           func() shown { return figures("pods.created", "latencies.push.KIND") },
		"growth of a latency": func() shown { return rateOf("latencies.push.KIND") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			show()
		})
	}
}

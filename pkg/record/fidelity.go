package record

import (
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

// FidelityKind is the kind of a Fidelity.
const FidelityKind = "Fidelity"

// Fidelity is a simulated sidecar compared with a real one, two pods of one
// workload on istiod, as seen between them and istiod; or two ztunnels of one node.
type Fidelity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Schema     int    `json:"schema"`
	// Status is StatusCompleted when every case asked for was gone through.
	Status       Status         `json:"status"`
	Reason       string         `json:"reason,omitempty"` // why not; "" when it was
	Machine      Machine        `json:"machine"`
	Scaler       string         `json:"scaler"` // version
	Made         time.Time      `json:"made"`
	Seconds      float64        `json:"seconds"`           // that it took
	Envoy        string         `json:"envoy,omitempty"`   // its version; "" = ztunnels were compared
	Ztunnel      string         `json:"ztunnel,omitempty"` // its version; "" = sidecars were compared
	ControlPlane string         `json:"controlPlane"`      // name and version
	Cases        []FidelityCase `json:"cases"`             // that were begun
	// TimesNotJudged states why no case has TimeTests; "" if they have.
	TimesNotJudged string `json:"timesNotJudged,omitempty"`
}

// FidelityCase is the comparison under one setting of the knobs.
type FidelityCase struct {
	Name  string            `json:"name"`
	Knobs scenario.Settings `json:"knobs"`
	// Unfinished states why what follows is not all that there was to compare; ""
	// when it is.
	Unfinished string `json:"unfinished,omitempty"`

	// Start compares the sidecars' starts, one after the other.
	Start Sameness `json:"start"`
	// Resources are the resources that both hold after the last start, by type.
	Resources map[string]HeldResources `json:"resources"`
	// BytesRatio is simulated over real, of all resources held.
	BytesRatio *float64 `json:"bytesRatio,omitempty"`
	// Real and Simulated are the times of the starts.
	Real      StartTimes `json:"real"`
	Simulated StartTimes `json:"simulated"`
	// TimeTests are the tests of those, one family with those of all other cases;
	// none where there were too few starts.
	TimeTests []TimeTest `json:"timeTests,omitempty"`

	// Changes compares how both followed each random change of the mesh.
	Changes Sameness `json:"changes"`
	// AfterChanges are the resources that both hold after all changes, by type.
	AfterChanges map[string]HeldResources `json:"afterChanges"`
	// Reconnect compares the streams that followed a broken one.
	Reconnect Sameness `json:"reconnect"`
	// Certificates compares the requests for certificates of two ztunnels.
	Certificates *CertificatesCompared `json:"certificates,omitempty"`

	// Differences lists the distinct differences that were seen.
	Differences []Difference `json:"differences"`
}

// CertificatesCompared states how many requests for certificates both sent, and how many
// both sent alike: for the same identity, in the same words, with the same outcome.
type CertificatesCompared struct {
	Real      int `json:"real"`
	Simulated int `json:"simulated"`
	Common    int `json:"common"`
	// RealAtOnce and SimulatedAtOnce are the most that were under way at once.
	RealAtOnce      int `json:"realAtOnce"`
	SimulatedAtOnce int `json:"simulatedAtOnce"`
}

// Sameness states how often both sent the same sequence of requests.
type Sameness struct {
	Compared int `json:"compared"`
	Same     int `json:"same"`
	// Silent is the part of Same in which istiod sent nothing to either and neither
	// sent a request: it compares nothing.
	Silent int `json:"silent"`
}

// HeldResources counts the resources of one type that each side holds, and those that both hold.
type HeldResources struct {
	Real           int `json:"real"` // resources
	Simulated      int `json:"simulated"`
	Common         int `json:"common"` // of both, by name
	RealBytes      int `json:"realBytes"`
	SimulatedBytes int `json:"simulatedBytes"`
}

// SameNames reports whether both hold the same resources.
func (h HeldResources) SameNames() bool { return h.Real == h.Common && h.Simulated == h.Common }

// BytesRatio is simulated over real, of all the resources held; not known where the
// real sidecar holds none.
func BytesRatio(types map[string]HeldResources) (ratio float64, known bool) {
	var real, simulated int
	for _, h := range types {
		real += h.RealBytes
		simulated += h.SimulatedBytes
	}
	if real == 0 {
		return 0, false
	}
	return float64(simulated) / float64(real), true
}

// StartTimes are the times of one side's starts, from the first request on.
// Times are in seconds.
type StartTimes struct {
	First    *Spread `json:"firstConfiguration,omitempty"`    // to the first response
	Complete *Spread `json:"completeConfiguration,omitempty"` // to the last acknowledgement
	// Waiting is the part of Complete in which the control plane's answer was
	// waited for; the rest is the proxy's own doing.
	Waiting *Spread `json:"waiting,omitempty"`
}

// Spread summarizes a few measurements of the same quantity.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// TimeTest reports whether one time of the starts of both sides differs.
type TimeTest struct {
	Figure string `json:"figure"` // as in StartTimes
	// P is the p-value of a two-sided rank-sum test: the probability of a difference
	// in ranks at least this large between sides that do not differ.
	P float64 `json:"p"`
	// Holm is P corrected for all times of all cases: up to 0.05 a difference is
	// established, and is among the differences.
	Holm float64 `json:"holm"`
}

// Difference is one way in which a simulated sidecar differs from a real one.
type Difference struct {
	About     string `json:"about"` // what differs, as "node INSTANCE_IPS", "start", "LDS 0.0.0.0_80"
	Real      string `json:"real"`
	Simulated string `json:"simulated"`
	Count     int    `json:"count"` // how often it was seen
	// Explained states why the difference is expected; "" = it is not explained.
	Explained string `json:"explained,omitempty"`
}

// Unexplained returns the differences of all cases that have no explanation.
func (f *Fidelity) Unexplained() []Difference {
	var all []Difference
	for _, c := range f.Cases {
		for _, d := range c.Differences {
			if d.Explained == "" {
				all = append(all, d)
			}
		}
	}
	return all
}

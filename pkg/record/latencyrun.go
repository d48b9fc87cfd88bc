package record

import (
	"strings"
	"time"
)

// LatencyKind is the kind of a LatencyRun.
const LatencyKind = "LatencyRun"

// LatencyRun is the result of `scaler latency`: the latency that the mesh adds to requests.
type LatencyRun struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Schema     int        `json:"schema"`
	Name       string     `json:"name"`             // of its folder
	Status     Status     `json:"status"`           // completed, interrupted or failed
	Reason     string     `json:"reason,omitempty"` // why it is not completed
	Started    time.Time  `json:"started"`          // start of the mesh included
	Finished   *time.Time `json:"finished,omitempty"`

	Spec        LatencySpec        `json:"spec"`
	Environment Environment        `json:"environment"`
	Cluster     *LatencyCluster    `json:"cluster,omitempty"`    // that clients and servers were pods of; absent where they were processes of this machine
	Checks      []LatencyCheck     `json:"checks,omitempty"`     // of the variants with sidecars
	Rows        []LatencyRow       `json:"rows"`                 // by rate, or connections, and then variant, as asked
	Published   []PublishedLatency `json:"published,omitempty"`  // at the same rates
	Instrument  *Instrument        `json:"instrument,omitempty"` // scaler itself, generator included, over all windows
	Warnings    []Warning          `json:"warnings,omitempty"`

	Dir string `json:"-"` // folder of the record; "" where it was not read from one
}

// PublishedLatency is one quantile that others published, of another machine. It is
// printed with the rows of its rate, without a test.
type PublishedLatency struct {
	Name     string             `json:"name"`
	Source   string             `json:"source"`
	RPS      float64            `json:"rps"`
	Quantile string             `json:"quantile"` // p50, p90, p99 or max
	Seconds  map[string]float64 `json:"seconds"`  // by what stood between, as the source calls it; none = nothing
}

// LatencySpec is the specification of a LatencyRun.
type LatencySpec struct {
	RPS         []float64 `json:"rps,omitempty"`         // open loop: requests a second of each rate
	Connections []int     `json:"connections,omitempty"` // closed loop: how many are always busy
	Requests    int       `json:"requests,omitempty"`    // closed loop: of each variant and repeat
	Variants    []string  `json:"variants"`              // none, and modes of the control plane
	Preset      string    `json:"preset,omitempty"`

	Arrivals         string    `json:"arrivals,omitempty"` // open loop: constant or poisson
	Seed             uint64    `json:"seed"`
	HTTP             int       `json:"http"` // 1 or 2
	Keepalive        bool      `json:"keepalive"`
	MaxConnections   int       `json:"maxConnections,omitempty"` // open loop: requests that may be under way
	TimeoutSeconds   float64   `json:"timeoutSeconds"`
	Topology         string    `json:"topology"`    // pair, star or chain
	Replicas         int       `json:"replicas"`    // of each tier behind the load generator
	WaitSeconds      []float64 `json:"waitSeconds"` // of each tier, the nearest first
	KillEverySeconds float64   `json:"killEverySeconds,omitempty"`
	// Redirected reports that client and servers of every variant are in a network namespace each, and
	// that connections are redirected to sidecars there, as in pods.
	Redirected bool `json:"redirected,omitempty"`
	// Placements state where the pods of a cluster are: all on one-node, or client and servers on two-nodes. Absent without a cluster.
	Placements []string `json:"placements,omitempty"`

	DurationSeconds float64 `json:"durationSeconds,omitempty"` // open loop: of each rate, variant and repeat, warm-ups excluded
	Rounds          int     `json:"rounds"`                    // that it is divided into
	WarmupSeconds   float64 `json:"warmupSeconds"`             // before each round
	Repeats         int     `json:"repeats"`
}

// LatencyCluster is an existing cluster, whose pods sent and answered the requests.
type LatencyCluster struct {
	Context string `json:"context"` // of the kubeconfig
	Server  string `json:"server"`  // URL of its API server
	Run     string `json:"run"`     // value of the label scaler.mesh/run of all that the run made there
	Image   string `json:"image"`   // of scaler, in all pods
	// Nodes are the nodes that pods ran on: the client's and, with two-nodes, the servers'.
	Nodes []LatencyNode `json:"nodes"`
}

// LatencyNode is a node of a cluster, as its kubelet describes it.
type LatencyNode struct {
	Name        string  `json:"name"`
	CPUs        float64 `json:"cpus"`
	MemoryBytes float64 `json:"memoryBytes"`
	Kernel      string  `json:"kernel"`
	Kubelet     string  `json:"kubelet"` // version
	Runtime     string  `json:"runtime"` // of containers, with its version
}

// LatencyCheck is the result of the checks of a variant with sidecars, which precede its measurement.
type LatencyCheck struct {
	Variant   string `json:"variant"`
	Placement string `json:"placement,omitempty"` // as in the rows
	// Plaintext is the result of a request in plaintext that bypasses the client's sidecar, at every server.
	Plaintext CheckResult `json:"plaintext"`
	// NoCertificate is the result of such a request over TLS without a certificate; absent if not tried.
	NoCertificate CheckResult `json:"noCertificate,omitempty"`
	// OtherIdentity is the result of such a request with a certificate of the mesh whose identity is
	// no allowed caller; absent if not tried.
	OtherIdentity CheckResult `json:"otherIdentity,omitempty"`
	// Caller states what the last tier knows of its caller.
	Caller CallerKnown `json:"caller"`
}

// ChecksText returns one line about the checks of each variant.
func ChecksText(checks []LatencyCheck) string {
	known := map[CallerKnown]string{
		CallerSeen: "the server sees the caller's identity", CallerAllowed: "the caller's identity is an allowed one",
		CallerUnknown: "the caller's identity is unknown",
	}
	var texts []string
	for _, c := range checks {
		text := c.Variant
		if c.Placement != "" {
			text += " (" + c.Placement + ")"
		}
		text += ": plaintext " + string(c.Plaintext)
		if c.NoCertificate != "" {
			text += ", TLS without a certificate " + string(c.NoCertificate)
		}
		if c.OtherIdentity != "" {
			text += ", another identity " + string(c.OtherIdentity)
		}
		texts = append(texts, text+", "+known[c.Caller])
	}
	return strings.Join(texts, "; ")
}

// CheckResult is the result of a request that is sent as a check.
type CheckResult string

// The results of checks.
const (
	CheckRefused  CheckResult = "refused"
	CheckAnswered CheckResult = "answered"
)

// CallerKnown states what is known of a server's caller.
type CallerKnown string

// What can be known.
const (
	CallerSeen    CallerKnown = "seen"    // the server was told the identity of the client's sidecar
	CallerAllowed CallerKnown = "allowed" // it is one that is allowed: another one is refused
	CallerUnknown CallerKnown = "unknown" // nobody reports it
)

// LatencyRow has the results of one rate, or number of connections, and variant: all its rounds
// of all repeats together.
type LatencyRow struct {
	RPS         float64 `json:"rps,omitempty"`         // open loop: offered
	Connections int     `json:"connections,omitempty"` // closed loop: always busy
	Variant     string  `json:"variant"`
	Placement   string  `json:"placement,omitempty"` // one-node or two-nodes; absent where all are processes of one machine

	Latency     LatencyFigure     `json:"latency"`              // due (closed loop: sent) to the last byte of the answer
	AchievedRPS float64           `json:"achievedRps"`          // good answers a second
	Requests    int64             `json:"requests"`             // due
	Errors      int64             `json:"errors"`               // of Requests
	ErrorKinds  map[string]int64  `json:"errorKinds,omitempty"` // connect, timeout, closed, malformed, or as "status 503"
	NotSent     int64             `json:"notSent"`              // of Requests: there was no room under maxConnections
	Lateness    *Latency          `json:"lateness,omitempty"`   // open loop: due to when the generator came to send
	Late        []string          `json:"late,omitempty"`       // quantiles at which lateness is over a tenth of latency, and 0.2 ms
	Added       *Quantiles[Added] `json:"added,omitempty"`      // latency over that of the variant none
	Sidecars    *LatencySidecars  `json:"sidecars,omitempty"`   // absent for the variant none

	MostConnections int             `json:"mostConnections"`    // that the generator ever had at once
	Repeats         []LatencyRepeat `json:"repeats,omitempty"`  // in order
	Timeline        []LatencySecond `json:"timeline,omitempty"` // in order; where servers were killed
}

// LatencyFigure is a distribution with how far its quantiles are known.
type LatencyFigure struct {
	Latency
	// Intervals hold, with 95 % confidence, the mean over ever more repeats of a
	// quantile (Student's t); absent for fewer than two repeats, and where a
	// repeat lost that quantile. A repeat counts if every variant did all its
	// rounds.
	Intervals *Quantiles[Interval] `json:"intervals,omitempty"`
}

// Quantiles hold a T for each quantile of a distribution; nil = there is none.
type Quantiles[T any] struct {
	P50  *T `json:"p50,omitempty"`
	P90  *T `json:"p90,omitempty"`
	P99  *T `json:"p99,omitempty"`
	P999 *T `json:"p999,omitempty"`
	Max  *T `json:"max,omitempty"`
}

// QuantileNames are the names of a Latency's quantiles, in the order of those of
// Quantiles.
var QuantileNames = []string{"p50", "p90", "p99", "p999", "max"}

// At returns where the T of a name is kept; nil for another name.
func (q *Quantiles[T]) At(name string) **T {
	switch name {
	case "p50":
		return &q.P50
	case "p90":
		return &q.P90
	case "p99":
		return &q.P99
	case "p999":
		return &q.P999
	case "max":
		return &q.Max
	}
	return nil
}

// Quantiles returns the quantiles of a distribution, in seconds. Without lost
// observations the result has a maximum; with them the maximum is not known, as
// every lost observation exceeds Max.
func (l *Latency) Quantiles() Quantiles[float64] {
	q := Quantiles[float64]{P50: l.P50, P90: l.P90, P99: l.P99, P999: l.P999}
	if l.Lost == 0 {
		q.Max = l.Max
	}
	return q
}

// Interval is the 95 % confidence interval of a figure.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Added is the difference between a variant's quantile and the quantile of none: the mean of
// the differences in each repeat.
type Added struct {
	Seconds float64 `json:"seconds"`
	// Interval and P are of the paired t test over the repeats: P is the
	// probability of a mean difference as far from 0 if there were none. Absent
	// for fewer than two repeats.
	Interval *Interval `json:"interval,omitempty"`
	P        *float64  `json:"p,omitempty"`
	// Holm is P corrected by Holm's method for all quantiles of all rows of the run.
	Holm        *float64 `json:"holm,omitempty"`
	Significant *bool    `json:"significant,omitempty"` // Holm is below 0.05
}

// LatencySidecars is the usage of a variant's sidecars in its windows.
type LatencySidecars struct {
	Count           int              `json:"count"`
	Workers         int              `json:"workers"`                   // threads of each sidecar that serve requests
	CoresPer1000RPS *float64         `json:"coresPer1000Rps,omitempty"` // of all together
	Tiers           []LatencySidecar `json:"tiers"`                     // the load generator's first
}

// LatencySidecar is the mean over the sidecars of one tier.
type LatencySidecar struct {
	Tier        string  `json:"tier"` // client, server, or in a chain hop1, hop2, ...
	Count       int     `json:"count"`
	Cores       float64 `json:"cores"`
	MemoryBytes float64 `json:"memoryBytes"` // resident, weighted by time
	// Saturation is at most this share of the time, 0 to 1, in which a thread was
	// ready to run and waited for a processor: of the tier's program, Envoy or agent,
	// that waited most. Absent where the kernel does not report it.
	Saturation *float64 `json:"saturation,omitempty"`
}

// LatencyRepeat is one repeat of a row.
type LatencyRepeat struct {
	Latency     Latency `json:"latency"`
	AchievedRPS float64 `json:"achievedRps"`
	Errors      int64   `json:"errors"`
	NotSent     int64   `json:"notSent"`
}

// LatencySecond counts the results of the requests that were due in one second of a
// repeat's window.
type LatencySecond struct {
	Repeat   int   `json:"repeat"` // from 1
	Second   int   `json:"second"` // from 0
	Requests int64 `json:"requests"`
	Errors   int64 `json:"errors"`
	NotSent  int64 `json:"notSent"`
}

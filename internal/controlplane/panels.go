package controlplane

// Panel is a drawing of a control plane's own metrics on scaler's dashboards, which
// are generated from it.
type Panel struct {
	Place PanelPlace
	Title string
	Unit  string // as Grafana calls it: "s", "short", "cps" (a second)
	About string // what the figure means, and the metrics in brackets
	Stack bool   // its series add up
	// Limit is the metric of scaler that has a known limit of the figure; "" = none.
	Limit  string
	Series []PanelSeries
}

// PanelPlace is the place of a panel on the dashboards.
type PanelPlace string

// The places of panels.
const (
	PanelOwn          PanelPlace = "own"          // the control plane's own metrics
	PanelResponses    PanelPlace = "responses"    // with the responses that sidecars received
	PanelCertificates PanelPlace = "certificates" // with the certificates that sidecars received
)

// PanelSeries is a metric in a panel.
type PanelSeries struct {
	Value    SeriesValue
	Metric   string   // without _sum and _count for a mean
	Matchers []string // of labels, in PromQL
	By       []string // labels of which each value is a series of its own
	Name     string   // distinguishes it from the other series of its panel; "" = there is none
}

// SeriesValue is the value of a metric that a panel shows.
type SeriesValue string

// The values that can be drawn.
const (
	ValueRate  SeriesValue = "rate"  // of a counter, per second
	ValueMean  SeriesValue = "mean"  // of a histogram or summary
	ValueSum   SeriesValue = "sum"   // of a gauge
	ValueLeast SeriesValue = "least" // of a gauge
)

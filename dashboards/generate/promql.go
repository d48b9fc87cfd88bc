package main

import (
	"fmt"
	"slices"
	"strings"
)

// promql is an expression of Prometheus's query language, or a part of one.
type promql string

// chosen are the label matchers for the reader's selection.
const chosen = `run=~"$run",mode=~"$mode"`

// metrics selects a metric by its name and further matchers, within the reader's
// selection.
type metrics func(name string, matchers ...string) promql

// of returns a constructor of queries for metrics that have these matchers in common.
func of(matchers ...string) metrics {
	return func(name string, more ...string) promql {
		return promql(name + "{" + strings.Join(slices.Concat([]string{chosen}, matchers, more), ",") + "}")
	}
}

var (
	metric  = of()                              // anybody's
	own     = of(`job=~"$control_plane"`)       // the control plane's, as it reports
	process = of(`component=~"$control_plane"`) // the control plane's, as seen from outside
)

// byPhase is the matcher for the phases that the reader has chosen. inPhase is 1 during
// them.
const byPhase = `phase=~"$phase"`

var inPhase = metric("scaler_phase_info", byPhase)

// last returns the query for the last value over the chosen time, for tables.
func last(selected promql) promql { return "last_over_time(" + selected + "[$__range])" }

// recent returns the query for the last value since the previous point.
func recent(selected promql) promql { return "last_over_time(" + selected + "[$__rate_interval])" }

// query is one question of a panel.
type query struct {
	expr promql
	by   []string // labels in addition to run and mode that distinguish its results
	name string   // distinguishes them from those of the panel's other queries; of a table, the column
}

// as returns the query with a name.
func (q query) as(name string) query {
	q.name = name
	return q
}

// legend returns the legend of the query's series.
func (q query) legend() string {
	words := []string{"{{run}}"}
	for _, label := range q.by {
		words = append(words, "{{"+label+"}}")
	}
	if q.name != "" {
		words = append(words, q.name)
	}
	return strings.Join(words, " ")
}

// phased restricts an expression to the phases that the reader has chosen.
func phased(expr promql) promql { return "(" + expr + ") and on (run, mode) " + inPhase }

// aggregate combines series over all labels except these, run and mode.
func aggregate(operator string, expr promql, by ...string) query {
	labels := strings.Join(append([]string{"run", "mode"}, by...), ", ")
	return query{expr: promql(fmt.Sprintf("%s by (%s) (%s)", operator, labels, expr)), by: by}
}

// sum adds gauges up.
func sum(selected promql, by ...string) query { return aggregate("sum", selected, by...) }

// rate adds up what counters count per second.
func rate(counters promql, by ...string) query {
	return sum("rate("+counters+"[$__rate_interval])", by...)
}

// worst returns the query for the greatest value within each rate's window. A plain query
// takes one sample for each point drawn, and misses the others.
func worst(selected promql, by ...string) query {
	return aggregate("max", "max_over_time("+selected+"[$__rate_interval])", by...)
}

// unfulfilled returns the query for the share of each rate's window in which a value of 0
// or 1 was 0.
func unfulfilled(selected promql, by ...string) query {
	return aggregate("avg", "1 - avg_over_time("+selected+"[$__rate_interval])", by...)
}

// combine joins two queries by an operator.
func combine(a query, operator promql, b query) query {
	a.expr += " " + operator + " " + b.expr
	return a
}

// ratio divides a by b; where b is 0 there is no value.
func ratio(a, b query) query {
	b.expr = "(" + b.expr + " > 0)"
	return combine(a, "/", b)
}

// mean returns the query for the mean of the observations of a histogram or summary, from
// its sum and its count; where there were no observations there is no value.
func mean(from metrics, name string, by ...string) query {
	return ratio(rate(from(name+"_sum"), by...), rate(from(name+"_count"), by...))
}

// quantile returns the query for a quantile of a sum of native histograms.
func quantile(q float64, histograms query) query {
	histograms.expr = promql(fmt.Sprintf("histogram_quantile(%g, %s)", q, histograms.expr))
	return histograms
}

// quantiles returns the queries for three quantiles of one of scaler's native histograms.
func quantiles(name string) []query {
	var all []query
	for _, q := range []float64{0.5, 0.9, 0.99} {
		all = append(all, quantile(q, rate(metric(name))).as(percentile(q)))
	}
	return all
}

// percentile returns the name of a quantile, such as p50.
func percentile(q float64) string { return fmt.Sprintf("p%g", 100*q) }

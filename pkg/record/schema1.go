package record

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// schema1Texts are the texts of warnings as schemas 0 and 1 had them, which had no
// reasons, in the language of fill. Names in them are those of the reasons' values.
// One that ends with {} is the beginning of a text. They do not change any more.
var schema1Texts = []struct {
	reason Reason
	text   string
}{
	{ReasonSaturated, "saturated for up to {share:percent} of the phase: times are upper bounds, peak cores a lower bound of the demand"},
	{ReasonAtLimit, "used up to {peakCores} cores in its busiest second, and its GOMAXPROCS is {maxProcs}: what waited for a processor within it is not in its saturation, times are upper bounds, peak cores a lower bound of the demand"},
	{ReasonRestarted, "restarted {restarts} times"},
	{ReasonLimitNotEnforced, "the control plane is told of the limit (GOMEMLIMIT), and nothing enforces it: {detail}"},

	{ReasonLateInstrument, "scaler itself ran late: {p99Seconds:ms} at p99 of its own scheduling lag"},
	{ReasonLateReceipt, "scaler itself received late: {waited} of {responses} responses waited until it had room for them, up to {longestSeconds:ms} and {totalSeconds} s in all, and may have come that much earlier"},
	{ReasonWaitedInstrument, "scaler had a thread that waited for a processor for up to {share:percent} of the time: latencies hold what its own reading of answers waited"},
	{ReasonLateGenerator, "the generator was itself late at {detail}: by more than a tenth of the latency, and {thresholdSeconds:ms}"},
	{ReasonLateBurst, "a burst was complete {lateSeconds} s after it was due, with {intervalSeconds:duration} between two"},
	{ReasonScrapeGap, "{missed} of {scrapes} scrapes of {component} were missed"},
	{ReasonSeriesEnd, "the time series end before the last phase does: {detail}"},
	{ReasonNotMeasured, "it could not be measured: {detail}"},
	{ReasonNotMeasured, "not known: {detail}"},
	{ReasonUsageUnknown, "in {phase} {component} is not measured: {detail}"},

	{ReasonLost, "{lost} of {all} did not come by the time limit"},
	{ReasonNeverComplete, "{missing} of {all} sidecars were never complete"},
	{ReasonIncompleteReady, "{pods} pods were made ready though their sidecars lacked something, and count as lost: they had all that they had asked for, and the control plane sent them nothing for {quietSeconds:duration} or more"},
	{ReasonUnconverged, "when the time limit passed: {detail}"},
	{ReasonNotConvergedAgain, "the mesh did not converge again within {limitSeconds:duration}"},
	{ReasonNotConvergedAgain, "{component}: the mesh did not converge again within {limitSeconds:duration}"},
	{ReasonEndedUnconverged, "{component}: the run ended before the mesh had converged again"},
	{ReasonSlowChurn, "{achievedPerSecond} pods a second were replaced, of {offeredPerSecond} offered: the others were not ready when their turn came"},
	{ReasonWatchesMissing, "{afterSeconds:duration} after, {kinds} kinds of object were watched by fewer clients than before: what comes next is measured without them"},
	{ReasonWatchesUnknown, "it is not known whether all clients of the API server watch again: {detail}"},

	{ReasonRefused, "the control plane refused {refused} of {attempts} attempts to connect, as its connection limiter does; waiting for it is part of the latency"},
	{ReasonRefused, "the server refused {refused} of {attempts} attempts; waiting for it is part of the latency"},
	{ReasonFailedAttempts, "{failed} of {attempts} attempts found no server, were turned away or lost their stream"},
	{ReasonRejected, "sidecars rejected {responses} responses"},
	{ReasonNotQuiet, "the control plane still sent responses {agoSeconds} s before steady began"},
	{ReasonNotQuietBetween, "the control plane did not come to rest between changes within {limitSeconds:duration}"},
	{ReasonCountsDiffer, "the control plane counts {theirs} ({detail}), scaler {ours}"},
	{ReasonUnexpectedResources, "{sidecars} sidecars hold {resources} resources that the mesh and its knobs do not call for, as {detail}"},
	{ReasonMissingResources, "{sidecars} sidecars hold {resources} resources fewer than the control plane was expected to send, as {detail}"},
	{ReasonBytesDiffer, "a sidecar holds {heldBytes} bytes of {component}; {predictedBytes} were predicted from the mesh and its knobs"},

	{ReasonNothingToProbe, "no service has two pods: nothing could be probed without taking a service away"},
	{ReasonStrays, "{times} times a change reached a sidecar that it does not concern"},
	{ReasonUnconcerned, "{changes} changes concerned no sidecar and are not counted"},

	{ReasonSidecarCrashed, "the sidecar of pod {component} ended and was started again: {detail}"},
	{ReasonSidecarCrashed, "{component} ended {times} times and was started again: {detail}"},
	{ReasonCrashed, "{component} ended and was started again: {detail}"},
	{ReasonSidecarRefused, "the Envoy of pod {component} refused {detail}"},
	{ReasonSidecarsWaited, "the sidecars waited for processors, those of {component} for up to {share:percent} of the time: latencies, and what is added, are upper bounds of what they would be on machines of their own"},
	{ReasonCertificateExpired, "Envoys without an agent keep the certificate of their start, and the first such ended at {detail}, {endedSeconds:duration} before the run: its sidecar makes no connection with another since"},

	{ReasonRoundsMissing, "of {repeats:many repeat} all variants did all rounds of {rounds}: intervals, and what is added, are of those alone"},
	{ReasonNotSent, "{notSent} of {requests} requests were not sent: {bound} were under way already, which is the bound (--max-connections)"},
	{ReasonRequestsFailed, "{failed} of {requests} requests failed ({detail}): they count as slower than all that were answered"},
	{ReasonRetried, "not every request that met no server is an error: the server's sidecar tries up to {retries} times more, within 0.1 s, as {component} has it do; what then succeeds is a late answer here and an error without a mesh"},

	// Before those texts were what they are.
	{ReasonSaturated, "saturated for {}"},
	{ReasonAtLimit, "used up to {}"},
}

// schema1Patterns are the texts as patterns, with groups named by placeholders.
var schema1Patterns = sync.OnceValue(func() []*regexp.Regexp {
	var patterns []*regexp.Regexp
	for _, each := range schema1Texts {
		pattern, end := "", 0
		text := strings.ReplaceAll(each.text, "{}", "")
		for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
			name, format := text[at[2]:at[3]], ""
			if at[4] >= 0 {
				format = text[at[4]:at[5]]
			}
			pattern += regexp.QuoteMeta(text[end:at[0]]) + "(?P<" + name + ">" + written(name, format) + ")"
			end = at[1]
			switch unit, isMany := strings.CutPrefix(format, "many "); {
			case format == "percent":
				pattern += " ?%"
			case format == "ms":
				pattern += " ms"
			case isMany:
				pattern += " " + unit + "s?"
			}
		}
		pattern += regexp.QuoteMeta(text[end:])
		if text == each.text {
			pattern += "$"
		}
		patterns = append(patterns, regexp.MustCompile("(?s)^"+pattern))
	}
	return patterns
})

// written is how what stands in a placeholder may be written.
func written(name, format string) string {
	switch {
	case name == "detail":
		return ".*"
	case name == "component":
		return `[^:]+?`
	case name == "phase":
		return `\w+`
	case format == "duration":
		return `[0-9.hmsµ]+`
	}
	return `[-+0-9.e]+`
}

// reasoned is a warning of schema 1 with the fields that its text holds; those of
// other texts have no reason.
func reasoned(w Warning) Warning {
	if w.Reason != "" {
		return w
	}
	for i, pattern := range schema1Patterns() {
		match := pattern.FindStringSubmatch(w.Text)
		if match == nil {
			continue
		}
		w.Reason = schema1Texts[i].reason
		w.Phase = phaseOf(w.About)
		formats := map[string]string{}
		for _, at := range placeholder.FindAllStringSubmatch(schema1Texts[i].text, -1) {
			formats[at[1]] = at[2]
		}
		for j, name := range pattern.SubexpNames()[1:] {
			w.take(name, formats[name], match[j+1])
		}
		if w.Reason == ReasonSidecarCrashed && w.Values == nil {
			w.Component = "the sidecar of pod " + w.Component
			w.Values = map[string]float64{"times": 1}
		}
		return w
	}
	return w
}

// take sets the field, or the value, that a placeholder is of. A number that cannot be
// read is left out.
func (w *Warning) take(name, format, text string) {
	switch name {
	case "detail":
		w.Detail = text
		return
	case "component":
		w.Component = text
		return
	case "phase":
		w.Phase = PhaseName(text)
		return
	}
	value, err := strconv.ParseFloat(text, 64)
	switch format {
	case "duration":
		var d time.Duration
		d, err = time.ParseDuration(text)
		value = d.Seconds()
	case "percent":
		value /= 100
	case "ms":
		value /= 1e3
	}
	if err != nil {
		return
	}
	if w.Values == nil {
		w.Values = map[string]float64{}
	}
	w.Values[name] = value
}

// reasonedAll gives reasons to the warnings of a record that has none yet.
func reasonedAll(warnings []Warning) {
	for i, w := range warnings {
		warnings[i] = reasoned(w)
	}
}

package report

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// explanation is the title of a reason, and its consequence for a reader of the figures.
type explanation struct {
	of             record.Reason
	title, meaning string
	// value is the key of a warning's most important value, and extent a format for it;
	// "" for reasons without one.
	value, extent string
}

// explanations lists all reasons, the most limiting first.
var explanations = []explanation{
	{record.ReasonUnconverged, "Not converged", "The time limit passed before every sidecar had its configuration and its certificate. Times of the rollout are lower bounds.", "", ""},
	{record.ReasonNotConvergedAgain, "Not converged again", "The mesh did not converge again after churn or a fault within the time limit.", "limitSeconds", "within %s"},
	{record.ReasonEndedUnconverged, "Ended before convergence", "The run ended before the mesh had recovered from a fault.", "", ""},
	{record.ReasonQuiescent, "At rest, but not as expected", "The control plane had nothing more to send, and every sidecar had acknowledged all. What sidecars hold differs from what is expected: either an object of the mesh explains it, or the expectation does not hold for this mesh. Figures that end with convergence are not known.", "resources", "%s resources"},
	{record.ReasonUnmet, "Latency without an end", "These sidecars never held what is expected of them, with the control plane at rest. Their latency is not known.", "unmet", "%s sidecars"},
	{record.ReasonNeverComplete, "Incomplete sidecars", "Some sidecars never had their complete configuration.", "missing", "%s sidecars"},
	{record.ReasonLost, "Lost observations", "What had not come by the time limit counts as slower than all that came. A quantile that falls among the lost is shown as a lower bound.", "lost", "%s lost"},
	{record.ReasonSaturated, "Saturated processors", "Threads were ready to run and waited for a processor. Times measured meanwhile are upper bounds, and peak cores are a lower bound of the demand.", "share", "%s of the phase"},
	{record.ReasonAtLimit, "Processor limit reached", "The control plane used all processors that it could use. Times measured meanwhile are upper bounds, and peak cores are a lower bound of the demand.", "peakCores", "%s cores at the peak"},
	{record.ReasonSidecarsWaited, "Sidecars waited for processors", "Latencies with sidecars, and what sidecars add, are upper bounds.", "share", "%s of the time"},
	{record.ReasonChangesPaused, "Changes paused", "The control plane pushes once nothing has changed for a while. Pods were due all the time, so that where they come evenly there may be fewer pushes and bytes, and sidecars that are complete later. Where time can be slowed down, a larger --dilate makes pauses shorter.", "longestSeconds", "for up to %s"},
	{record.ReasonLateInstrument, "scaler was scheduled late", "Latencies include the delay with which scaler itself observed.", "p99Seconds", "scheduling lag of %s at p99"},
	{record.ReasonPaused, "scaler did not run", "scaler itself was stopped for a time. What happened meanwhile was seen later, and peaks may be missed.", "pausedSeconds", "for %s"},
	{record.ReasonSuspended, "Machine suspended", "The machine was suspended. Time series have a gap; latencies, processor time and memory do not include that time.", "suspendedSeconds", "for %s"},
	{record.ReasonClockMoved, "Clock set", "The wall clock was set during a phase. Time series, and what is computed from them, are of another window.", "movedSeconds", "by %s"},
	{record.ReasonFromSamples, "Figures from samples", "The run goes on, or scaler was killed before it computed figures. These were computed from samples.jsonl when the record was read.", "", ""},
	{record.ReasonWorkerLost, "Worker lost", "A worker was lost and replaced. What its sidecars missed counts as lost, and the control plane served them again.", "sidecars", "%s sidecars"},
	{record.ReasonUncertainClock, "Uncertain clock of a worker", "Latencies between a change and the sidecars of this process may be off by this much.", "uncertaintySeconds", "up to %s"},
	{record.ReasonStartSeenLate, "Start seen after the end", "In more than a few observations scaler saw the start after the end, so the latency is not known. A push from the write is an upper bound that does not depend on it.", "clamped", "%s observations"},
	{record.ReasonLateReceipt, "scaler received responses late", "Responses waited until scaler had room for them. Latencies include this wait.", "longestSeconds", "up to %s"},
	{record.ReasonWaitedInstrument, "scaler waited for a processor", "Latencies include the time for which answers waited to be read.", "share", "%s of the time"},
	{record.ReasonLateGenerator, "Requests sent late", "The load generator sent requests late. Latencies count from the time at which a request was due.", "", ""},
	{record.ReasonMachineArrival, "Arrival of this machine", "All pods were requested at once and arrived as fast as this machine created them. Pushes, processor time and latencies of the rollout depend on it.", "achievedPerSecond", "%s pods per second"},
	{record.ReasonLateBurst, "Pods created late", "Bursts of pods took longer than planned, so the arrival rate is lower than offered.", "lateSeconds", "%s late"},
	{record.ReasonSlowArrival, "Pods arrived slowly", "Pods were created more slowly than offered.", "achievedPerSecond", "%s pods per second"},
	{record.ReasonSlowChange, "Changes written slowly", "Changes were written more slowly than offered.", "achievedPerSecond", "%s changes per second"},
	{record.ReasonSlowChurn, "Pods replaced slowly", "Pods were replaced more slowly than offered.", "achievedPerSecond", "%s pods per second"},
	{record.ReasonCrashed, "Control plane crashed", "The control plane ended and was started again. Figures of the phase include its start.", "", ""},
	{record.ReasonRestarted, "Restarts", "A program was started again within a phase. Figures of the phase include its start.", "restarts", "%s restarts"},
	{record.ReasonSidecarCrashed, "Real sidecars crashed", "A real sidecar ended and was started again.", "times", "%s times"},
	{record.ReasonContainerHeld, "Containers not started", "A container of a pod on a real node was not started by its kubelet, or ended and was not started again for a time.", "", ""},
	{record.ReasonSidecarRefused, "Configuration refused by Envoy", "A real sidecar refused configuration that it was sent.", "", ""},
	{record.ReasonCertificateExpired, "Certificates expired", "Envoys without an agent keep the certificate of their start, which expired during the run.", "", ""},
	{record.ReasonRefused, "Connections refused", "The control plane refused connections, as its connection limiter does. Latencies include the wait for another attempt.", "refused", "%s attempts refused"},
	{record.ReasonEarlyRefusals, "Connections refused too early", "Time was slowed down, but not the wait of a new stream for the control plane's limiter. More streams are refused, and sooner, than on the modelled machine. Figures of the rollout may be off either way.", "refused", "%s attempts refused"},
	{record.ReasonFailedAttempts, "Failed connection attempts", "Attempts to connect found no server or lost their stream. Latencies include the wait for another attempt.", "failed", "%s attempts failed"},
	{record.ReasonRejected, "Rejected responses", "Sidecars rejected responses of the control plane (NACK).", "responses", "%s responses"},
	{record.ReasonNotQuiet, "Not quiet before steady", "The control plane still worked on the rollout when the steady phase began, so steady figures may include a part of it.", "agoSeconds", "last response %s before steady"},
	{record.ReasonNotQuietBetween, "Not quiet between probes", "The control plane still sent responses when the next change was made, so a push latency may include the change before.", "limitSeconds", "within %s"},
	{record.ReasonUnexpectedResources, "More resources than expected", "Sidecars hold resources that the mesh and its knobs do not call for.", "resources", "%s resources"},
	{record.ReasonMissingResources, "Fewer resources than expected", "Sidecars hold fewer resources than the control plane was expected to send.", "resources", "%s resources"},
	{record.ReasonCountsDiffer, "Counts differ", "The control plane's own count differs from scaler's.", "", ""},
	{record.ReasonStrays, "Changes reached other sidecars", "Changes reached sidecars that they do not concern.", "times", "%s times"},
	{record.ReasonUnconcerned, "Changes without effect", "Changes that concern no sidecar are not counted.", "changes", "%s changes"},
	{record.ReasonNothingToProbe, "Nothing to probe", "No push latency was measured: no service has two pods.", "", ""},
	{record.ReasonRoundsMissing, "Incomplete repeats", "Intervals and differences are of the complete repeats only.", "repeats", "%s complete repeats"},
	{record.ReasonNotSent, "Requests not sent", "Requests beyond the bound on concurrent requests were not sent.", "notSent", "%s requests"},
	{record.ReasonRequestsFailed, "Failed requests", "Failed requests count as slower than all that were answered.", "failed", "%s requests"},
	{record.ReasonRetried, "Requests retried by sidecars", "A sidecar retries requests that met no server, so some errors appear as late answers.", "", ""},
	{record.ReasonWatchesMissing, "Clients of the API server missing", "Some clients of the API server did not watch again. Later figures are measured without them.", "kinds", "%s kinds of object"},
	{record.ReasonWatchesUnknown, "Clients of the API server unknown", "It is not known whether all clients of the API server watch again.", "", ""},
	{record.ReasonWatchesClosed, "Watches closed", "The API server closed watches of clients that did not read fast enough. These saw changes later, so times may be too long.", "watches", "%s watches"},
	{record.ReasonMachineProcessors, "Processors of this machine", "The control plane had the processors of the machine that it ran on, because time could not be slowed down. New streams a second, pushes at once and what follows from them are those of that machine.", "processors", "%s processors"},
	{record.ReasonReplacedVersion, "Another version than the one asked for", "The images of the version could not be downloaded, and the nearest version that scaler builds ran in its place. The figures are of that version.", "", ""},
	{record.ReasonOtherVersion, "Another version than the captured one", "The run is of another version of the control plane than the captured one: of one that scaler has, the nearest unless another was asked for.", "", ""},
	{record.ReasonProcessorsNotEnforced, "Processors not enforced", "The control plane may have used more processor time than its modelled machine has.", "", ""},
	{record.ReasonLimitNotEnforced, "Memory limit not enforced", "The memory limit is only a setting of the control plane.", "", ""},
	{record.ReasonScrapeGap, "Missed scrapes", "Some scrapes of a program's metrics were missed, so figures made from them have gaps.", "missed", "%s scrapes"},
	{record.ReasonSeriesEnd, "Time series end early", "The time series end before the last phase does.", "", ""},
	{record.ReasonUsageUnknown, "Usage not measured", "The usage of a program is missing for a phase.", "", ""},
	{record.ReasonNotMeasured, "Not measured", "A figure is missing.", "", ""},
	{"", "Other", "", "", ""},
}

// rank returns the position of a reason in explanations.
func rank(r record.Reason) int {
	for i, e := range explanations {
		if e.of == r {
			return i
		}
	}
	return len(explanations)
}

// explained returns the explanation of a reason. For a reason recorded by a newer scaler
// it has only the name.
func explained(r record.Reason) explanation {
	if i := rank(r); i < len(explanations) {
		return explanations[i]
	}
	return explanation{of: r, title: string(r)}
}

// rangeOf formats the range of the reason's most important value.
func (e explanation) rangeOf(values []float64) string {
	low, high := valueText(e.value, slices.Min(values)), valueText(e.value, slices.Max(values))
	if low != high {
		low += " to " + high
	}
	return fmt.Sprintf(e.extent, low)
}

// valueText formats a value of a warning in the unit that its name states.
func valueText(name string, v float64) string {
	switch {
	case name == "share":
		return percent(&v)
	case strings.HasSuffix(name, "Seconds"):
		return seconds(&v)
	default:
		return tally(&v)
	}
}

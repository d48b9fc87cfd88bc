package record

// Reason is the code of a reason for a warning. The list is closed: readers may rely on it, and
// a new one raises Schema.
type Reason string

// The reasons, by what they are about. In brackets are the names of a warning's Values,
// in base units; what Component and Detail hold is stated where it is not plain.
const (
	// Processors and restarts.
	ReasonSaturated             Reason = "saturated"             // threads waited for a processor [share: of the phase]
	ReasonAtLimit               Reason = "atLimit"               // the control plane used all that it could use [peakCores, maxProcs]
	ReasonRestarted             Reason = "restarted"             // a program was started again in a phase [restarts]
	ReasonCrashed               Reason = "crashed"               // the control plane ended unasked; Detail: its error
	ReasonLimitNotEnforced      Reason = "limitNotEnforced"      // the memory limit is only a setting of the program; Detail: why
	ReasonProcessorsNotEnforced Reason = "processorsNotEnforced" // nothing holds the control plane to its processors [processors]; Detail: why
	ReasonMachineProcessors     Reason = "machineProcessors"     // those of Component are of its machine: time cannot be slowed down with Detail [processors: absent where they are not known]
	ReasonReplacedVersion       Reason = "replacedVersion"       // version Component runs in place of Detail, whose images could not be had
	ReasonOtherVersion          Reason = "otherVersion"          // the control plane is of version Component; Detail: the captured one

	// The instrument itself.
	ReasonLateInstrument   Reason = "lateInstrument"   // scheduling lag [p99Seconds]
	ReasonLateReceipt      Reason = "lateReceipt"      // responses waited to be received [waited, responses, longestSeconds, totalSeconds]
	ReasonStartSeenLate    Reason = "startSeenLate"    // a latency's start was seen after its end too often for it to be known [clamped, all]; Detail: the path of the one from the write, where that is known
	ReasonUncertainClock   Reason = "uncertainClock"   // the clock of the worker Component is not known better [uncertaintySeconds]
	ReasonWorkerLost       Reason = "workerLost"       // the worker Component was lost in Phase, and another took its place [sidecars]
	ReasonWaitedInstrument Reason = "waitedInstrument" // scaler's threads waited for a processor [share]
	ReasonLateGenerator    Reason = "lateGenerator"    // requests were sent late [thresholdSeconds]; Detail: the quantiles
	ReasonMachineArrival   Reason = "machineArrival"   // all pods were requested at once and arrived as fast as the machine created them [achievedPerSecond: absent where it is not known]
	ReasonLateBurst        Reason = "lateBurst"        // a burst of pods took longer than planned [lateSeconds, intervalSeconds]
	ReasonScrapeGap        Reason = "scrapeGap"        // of Component's metrics [missed, scrapes]
	ReasonSeriesEnd        Reason = "seriesEnd"        // the time series end too early; Detail: why
	ReasonNotMeasured      Reason = "notMeasured"      // a figure is absent; Detail: why
	ReasonNotSupported     Reason = "notSupported"     // a figure is absent because Component cannot give it; Detail: why
	ReasonNotStated        Reason = "notStated"        // what sidecars of Component must receive; they count as complete when all that they asked for was answered
	ReasonUsageUnknown     Reason = "usageUnknown"     // Component's usage in Phase is absent; Detail: why
	ReasonClockMoved       Reason = "clockMoved"       // the wall clock was set in Phase [movedSeconds: negative = back]
	ReasonSuspended        Reason = "suspended"        // the machine was in Phase [suspendedSeconds]
	ReasonPaused           Reason = "paused"           // scaler did not run in Phase, as after SIGSTOP [pausedSeconds]
	ReasonFromSamples      Reason = "fromSamples"      // the run goes on or was killed: usage was computed when the record was read, and the last phase ends at the last sample

	// Convergence and loss.
	ReasonLost              Reason = "lost"              // not there by the time limit [lost, all]
	ReasonNeverComplete     Reason = "neverComplete"     // sidecars that lacked something to the end [missing, all]
	ReasonUnconverged       Reason = "unconverged"       // Detail: one thing that the mesh lacked when the time limit passed
	ReasonQuiescent         Reason = "quiescent"         // Phase ended with the control plane at rest, and sidecars differ from what is expected in these resources [sidecars, resources, explained: of the resources, those of which an object is known that explains them]; Detail: an example
	ReasonUnmet             Reason = "unmet"             // a latency has no end in sidecars that do not hold what is expected of them [unmet, all]
	ReasonNotConvergedAgain Reason = "notConvergedAgain" // after churn, or after the fault Component [limitSeconds]
	ReasonEndedUnconverged  Reason = "endedUnconverged"  // the run ended before the mesh had recovered from the fault Component
	ReasonChangesPaused     Reason = "changesPaused"     // no EndpointSlice changed for as long as the control plane waits for further changes, while pods came one by one [pauses, longestSeconds, debounceSeconds]
	ReasonSlowArrival       Reason = "slowArrival"       // pods arrived more slowly than asked [achievedPerSecond, offeredPerSecond]
	ReasonSlowChange        Reason = "slowChange"        // changes were written more slowly than asked [achievedPerSecond, offeredPerSecond]
	ReasonSlowChurn         Reason = "slowChurn"         // pods were replaced more slowly than asked [achievedPerSecond, offeredPerSecond]
	ReasonWatchesMissing    Reason = "watchesMissing"    // clients of the API server did not come back [kinds, afterSeconds]
	ReasonWatchesUnknown    Reason = "watchesUnknown"    // whether they did is not known; Detail: why
	ReasonWatchesClosed     Reason = "watchesClosed"     // by Component, the API server, as their clients did not read fast enough [watches]

	// What the control plane did.
	ReasonRefused             Reason = "refused"             // attempts to connect [refused, attempts]
	ReasonEarlyRefusals       Reason = "earlyRefusals"       // time was slowed down, and the wait of a new stream for the control plane's limiter was not [refused, attempts, factor, waitSeconds: on the modelled machine, stockSeconds: as it should be there]
	ReasonFailedAttempts      Reason = "failedAttempts"      // [failed, attempts]
	ReasonRejected            Reason = "rejected"            // responses that sidecars rejected, NACKs [responses]
	ReasonNotQuiet            Reason = "notQuiet"            // it still sent responses before steady [agoSeconds]
	ReasonNotQuietBetween     Reason = "notQuietBetween"     // it still sent responses between probes [limitSeconds]
	ReasonVersionUnknown      Reason = "versionUnknown"      // there are no expectations of Component, a program with its version; Detail: what is not checked
	ReasonCountsDiffer        Reason = "countsDiffer"        // its own count differs from scaler's [theirs, ours]; Detail: the query
	ReasonUnexpectedResources Reason = "unexpectedResources" // sidecars hold more than expected [sidecars, resources]; Detail: an example
	ReasonMissingResources    Reason = "missingResources"    // sidecars hold less than expected [sidecars, resources]; Detail: an example

	// Probes.
	ReasonNothingToProbe Reason = "nothingToProbe" // no service has two pods
	ReasonStrays         Reason = "strays"         // changes reached sidecars that they do not concern [times]
	ReasonUnconcerned    Reason = "unconcerned"    // changes that concern no sidecar [changes]

	// Real sidecars.
	ReasonSidecarCrashed     Reason = "sidecarCrashed"     // Component ended unasked [times]; Detail: the first error
	ReasonContainerHeld      Reason = "containerHeld"      // a kubelet did not start the container Component of a pod with a real sidecar, or not again yet; Detail: the state of the first such pod
	ReasonSidecarRefused     Reason = "sidecarRefused"     // the Envoy of the pod Component refused Detail
	ReasonSidecarsWaited     Reason = "sidecarsWaited"     // for processors, those of the tier Component most [share]
	ReasonCertificateExpired Reason = "certificateExpired" // nobody renews it [endedSeconds: before the run's end]; Detail: when

	// Requests of scaler latency.
	ReasonRoundsMissing  Reason = "roundsMissing"  // not all repeats are whole [repeats, rounds]
	ReasonNotSent        Reason = "notSent"        // requests beyond the bound on those under way [notSent, requests, bound]
	ReasonRequestsFailed Reason = "requestsFailed" // [failed, requests]; Detail: how many of each kind
	ReasonRetried        Reason = "retried"        // the sidecar hides errors by trying again [retries]; Component: the control plane
)

// sentences are the sentences of the reasons, in the language of fill.
var sentences = map[Reason]string{
	ReasonSaturated:             "saturated for up to {share:percent} of the phase: times are upper bounds, peak cores a lower bound of the demand",
	ReasonAtLimit:               "used up to {peakCores:.2f} cores in its busiest second, of {maxProcs:.3g} that it could use: what waited for a processor within it is not in its saturation, times are upper bounds, peak cores a lower bound of the demand",
	ReasonRestarted:             "restarted {restarts:times}",
	ReasonCrashed:               "{component} ended and was started again: {detail}",
	ReasonProcessorsNotEnforced: "nothing holds the control plane to its {processors} processors: it may have used more than a machine of that size has: {detail}",
	ReasonMachineProcessors:     "the control plane has the [{processors} ]processors of the machine that it runs on, because time cannot be slowed down with {detail}: new streams a second, pushes at once and all that follows from them are of that machine, and not of the scenario alone",
	ReasonOtherVersion:          "the captured control plane is version {detail}, and the run is of version {component}",
	ReasonReplacedVersion:       "version {component} ran in place of {detail}, whose images could not be had: the nearest that scaler builds",
	ReasonLimitNotEnforced:      "the control plane is given the limit as a setting (GOMEMLIMIT), and nothing enforces it: {detail}",

	ReasonLateInstrument:   "scaler itself ran late: {p99Seconds:ms} at p99 of its own scheduling lag",
	ReasonLateReceipt:      "scaler itself received late: {waited} of {responses} responses waited until it had room for them, up to {longestSeconds:ms} and {totalSeconds:.3g} s in all, and may have come that much earlier",
	ReasonStartSeenLate:    "not known: in {clamped} of {all} observations its start was seen after its end[; {detail} has the one from the write, an upper bound]",
	ReasonUncertainClock:   "times of the sidecars of {component} may be off by {uncertaintySeconds:ms}: its clock is not known better",
	ReasonWorkerLost:       "{component} was lost with {sidecars} sidecars, which connected again from another pod: what they missed counts as lost, and serving them again is part of the figures of the phase",
	ReasonWaitedInstrument: "scaler had a thread that waited for a processor for up to {share:percent} of the time: latencies include the time that its own reading of answers waited",
	ReasonLateGenerator:    "the generator was itself late at {detail}: by more than a tenth of the latency, and {thresholdSeconds:ms}",
	ReasonMachineArrival:   "all pods were requested at once and arrived as fast as this machine created them[, {achievedPerSecond:.1f} per second]: pushes, processor time and latencies of the rollout depend on this machine, and not on the scenario alone",
	ReasonLateBurst:        "a burst was complete {lateSeconds:.1f} s after it was due, with {intervalSeconds:duration} between two",
	ReasonScrapeGap:        "{missed} of {scrapes} scrapes of {component} were missed",
	ReasonSeriesEnd:        "the time series end before the last phase does: {detail}",
	ReasonNotMeasured:      "it could not be measured: {detail}",
	ReasonNotSupported:     "absent with {component}: {detail}",
	ReasonNotStated:        "it is not stated what sidecars of {component} must receive (controlPlane.connection.expect): one counts as complete, and as converged, when everything that it asked for was answered and acknowledged",
	ReasonClockMoved:       "the wall clock was set by {movedSeconds:duration} in {phase}: time series, and what is computed from them, are of another window; latencies, processor time and memory are not affected",
	ReasonSuspended:        "the machine was suspended for {suspendedSeconds:duration} in {phase}: time series have a gap; latencies, processor time and memory do not include that time",
	ReasonPaused:           "scaler did not run for {pausedSeconds:duration} in {phase}: what happened meanwhile was seen that much later, and peaks may be missed",
	ReasonFromSamples:      "the run goes on, or was killed before it computed figures: these are from samples.jsonl, and the last phase ends at its last sample",
	ReasonUsageUnknown:     "in {phase} {component} is not measured: {detail}",

	ReasonLost:              "{lost} of {all} did not come by the time limit",
	ReasonNeverComplete:     "{missing} of {all} sidecars were never complete",
	ReasonUnconverged:       "when the time limit passed: {detail}",
	ReasonQuiescent:         "the control plane had nothing more to send and every sidecar had acknowledged all, and {sidecars} sidecars hold {resources} resources otherwise than expected, of which {explained} are explained by an object of the mesh; one is {detail}",
	ReasonUnmet:             "not known: {unmet} of {all} sidecars never held what is expected of them, with the control plane at rest: they are not lost, and have no latency",
	ReasonNotConvergedAgain: "[{component}: ]the mesh did not converge again within {limitSeconds:duration}",
	ReasonEndedUnconverged:  "{component}: the run ended before the mesh had converged again",
	ReasonChangesPaused:     "while pods came one by one, no EndpointSlice changed for {debounceSeconds:ms} or longer {pauses:times}, for up to {longestSeconds:ms}. The control plane pushes after each such pause: pushes and bytes depend on how evenly pods came here, and not on the scenario alone",
	ReasonSlowArrival:       "{achievedPerSecond:.1f} pods a second arrived, of {offeredPerSecond:.1f} offered: the cluster created them more slowly",
	ReasonSlowChange:        "{achievedPerSecond:.1f} changes a second were written, of {offeredPerSecond:.1f} offered: the API server took them more slowly, and the control plane got fewer than asked for",
	ReasonSlowChurn:         "{achievedPerSecond:.1f} pods a second were replaced, of {offeredPerSecond:.1f} offered: the others were not ready when their turn came",
	ReasonWatchesMissing:    "{afterSeconds:duration} after, {kinds} kinds of object were watched by fewer clients than before: what comes next is measured without them",
	ReasonWatchesUnknown:    "it is not known whether all clients of the API server watch again: {detail}",
	ReasonWatchesClosed:     "the API server closed watches of clients that did not read fast enough ({watches}): what changed then they saw after watching again",

	ReasonRefused:             "the control plane refused {refused} of {attempts} attempts to connect, as its connection limiter does; waiting for it is part of the latency",
	ReasonEarlyRefusals:       "time was slowed down {factor:.3g} times, but not the {stockSeconds:duration} that a new stream waits for the control plane's limiter before it is refused: on the modelled machine it is {waitSeconds:ms}. So refusals ({refused} of {attempts} attempts) are too many and too early, and what sidecars wait after them is not as it would be there",
	ReasonFailedAttempts:      "{failed} of {attempts} attempts found no server, were turned away or lost their stream",
	ReasonRejected:            "sidecars rejected {responses} responses",
	ReasonNotQuiet:            "the control plane still sent responses {agoSeconds:.1f} s before steady began",
	ReasonNotQuietBetween:     "the control plane did not come to rest between changes within {limitSeconds:duration}",
	ReasonVersionUnknown:      "{component} is a version without expectations: {detail}",
	ReasonCountsDiffer:        "the control plane counts {theirs} ({detail}), scaler {ours}",
	ReasonUnexpectedResources: "{sidecars} sidecars hold {resources} resources that the mesh and its knobs do not call for, as {detail}",
	ReasonMissingResources:    "{sidecars} sidecars hold {resources} resources fewer than the control plane was expected to send, as {detail}",

	ReasonNothingToProbe: "no service has two pods: nothing could be probed without taking a service away",
	ReasonStrays:         "{times} times a change reached a sidecar that it does not concern",
	ReasonUnconcerned:    "{changes} changes concerned no sidecar and are not counted",

	ReasonSidecarCrashed:     "{component} ended {times:times} and was started again: {detail}",
	ReasonContainerHeld:      "container {component} of pods on real nodes was not started, or not again: {detail}",
	ReasonSidecarRefused:     "the Envoy of pod {component} refused {detail}",
	ReasonSidecarsWaited:     "the sidecars waited for processors, those of {component} for up to {share:percent} of the time: latencies, and what is added, are upper bounds of what they would be on machines of their own",
	ReasonCertificateExpired: "Envoys without an agent keep the certificate of their start, and the first such ended at {detail}, {endedSeconds:duration} before the run: its sidecar makes no connection with another since",

	ReasonRoundsMissing:  "of {repeats:many repeat} all variants did all rounds of {rounds}: intervals, and what is added, are of those alone",
	ReasonNotSent:        "{notSent} of {requests} requests were not sent: {bound} were under way already, which is the bound (latency.maxConnections)",
	ReasonRequestsFailed: "{failed} of {requests} requests failed ({detail}): they count as slower than all that were answered",
	ReasonRetried:        "not every request that met no server is an error: the server's sidecar tries up to {retries} times more, within 0.1 s, as {component} has it do; what then succeeds is a late answer here and an error without a mesh",
}

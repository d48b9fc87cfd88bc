package run

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// crossCheck compares the control plane's own counts with ours. After a phase in
// which nothing was touched they must be equal, unless it was restarted and lost
// them.
func (m measurement) crossCheck(ctx context.Context) error {
	if m.adapter.Instances != nil { // which count others than the run's, too
		return nil
	}
	if !m.completed || m.supervisor.Restarted() || m.upgrading != nil || m.replicas != nil && m.replicas.Restarted() {
		return nil
	}
	var w phases.Window // the last with figures
	var own map[string]float64
	for _, each := range m.windows {
		if slot := m.document.Own.At(each.Name); slot != nil {
			w, own = each, *slot
		}
	}
	// The control plane must have counted at least so many fewer than ours, and at most so many more.
	check := func(figure, about, expr string, at time.Time, ours, fewer, more int64) error {
		if expr == "" {
			return nil
		}
		theirs, ok, err := m.recorder.Value(ctx, expr, at)
		if err != nil {
			return err
		}
		if ok {
			own[figure] = theirs
		}
		if n := int64(theirs); n < ours-fewer || n > ours+more {
			m.journal.Warn(record.Warning{About: about, Reason: record.ReasonCountsDiffer, Component: m.controlPlaneName(), Detail: expr, Values: map[string]float64{
				"theirs": math.Trunc(theirs), "ours": float64(ours),
			}})
		}
		return nil
	}
	counters := m.driver.Metrics.Counters
	now := time.Now() // counts do not change any more; how many are connected did
	if m.spec.Mesh.Sidecars.Real > 0 {
		// What real sidecars request, scaler does not count.
		pods := int64(m.spec.Pods())
		return check("connected", "pods.connected", counters.Connected, w.End, pods, 0, 0)
	}
	var errs []error
	for _, t := range slices.SortedFunc(maps.Keys(counters.Responses), convergence.Type.Compare) {
		ours := m.document.XDS.Responses[t.String()]
		for _, also := range counters.AlsoCounts[t] {
			ours += m.document.XDS.Responses[also.String()]
		}
		errs = append(errs, check("totalResponses"+t.String(), "xds.responses."+t.String(), counters.Responses[t], now, ours, 0, 0))
	}
	errs = append(errs, check("connected", "pods.connected", counters.Connected, w.End, int64(w.Streams), 0, 0))
	if m.document.Certificates == nil {
		return errors.Join(errs...)
	}
	sent, issued := *m.document.Certificates.Attempts, *m.document.Certificates.Issued
	// Whether the control plane read a request without an answer, and issued a certificate
	// for it, is not known: the sidecar may have ended right after it had sent it.
	unanswered := max(0, sent-issued)
	return errors.Join(append(errs,
		check("totalCertificateRequests", "certificates.attempts", counters.CertificateRequests, now, sent, unanswered, 0),
		check("totalCertificates", "certificates.issued", counters.Certificates, now, issued, 0, unanswered),
	)...)
}

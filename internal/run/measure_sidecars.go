package run

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/ztunnel"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// measureSidecars puts into the record what the simulated sidecars counted and how
// they started.
func (m measurement) measureSidecars() error {
	x := experiment.XDSCounts(m.fleet.Workers.Counts())
	x.ConfigurationBytes, x.ConfigurationResources = m.observed.holdings.Bytes, m.observed.holdings.Resources
	if held := m.observed.holdings.Waypoints; held != nil && m.document.Proxies != nil && m.document.Proxies.Waypoints != nil {
		m.document.Proxies.Waypoints.ConfigurationBytes, m.document.Proxies.Waypoints.ConfigurationResources = held.Bytes, held.Resources
	}
	if held := m.observed.holdings.Nodes; held != nil && m.document.Proxies != nil {
		m.document.Proxies.ConfigurationBytes, m.document.Proxies.ConfigurationResources = held.Bytes, held.Resources
	}
	if m.document.Proxies != nil {
		m.document.Proxies.PerNode = m.observed.perNode
	}
	x.PerSidecar = m.observed.perSidecar
	if m.driver.NoXDS {
		x.Acks, x.Nacks = nil, nil
	}
	x.Rates = &record.ByPhase[*record.Rates]{}
	for _, w := range m.timeline.Windows() {
		if slot, seconds := x.Rates.At(w.Name), w.End.Sub(w.Begin).Seconds(); slot != nil && seconds > 0 {
			*slot = &record.Rates{ResponsesPerSecond: new(float64(w.Responses) / seconds), BytesPerSecond: new(float64(w.Bytes) / seconds)}
		}
	}
	m.document.XDS = x
	if err := m.countCertificates(); err != nil {
		return err
	}
	if m.document.Phase(record.PhaseRollout) != nil {
		m.observed.latencies.Lose(m.spec.Topology.Pods, m.spec.RealSidecars+served(m.run), m.spec.RealSidecars-m.spec.sidecarProcesses())
	}
	return m.observed.latencies.Save(m.journal.Writer(), "", &m.document.Latencies)
}

// received is what was received so far over the proxies that were ever connected. In a mixed mesh the
// proxies of nodes have types of their own, and what they received is not counted for the sidecars.
func received(r *run, c fleet.Counts) (sidecar, node *record.PerSidecar) {
	counts := r.fleet.Workers.Counts()
	if !r.adapter.Mixed(r.mesh) {
		return perProxy(counts, c.Simulated), nil
	}
	ofNodes := counts
	ofNodes.ByType = nil
	counts.ByType = slices.DeleteFunc(slices.Clone(counts.ByType), func(of xdsprobe.TypeCounts) bool {
		nodes := slices.ContainsFunc(ztunnel.Types(), func(t xdsprobe.ResourceType) bool { return t.Name == of.Type })
		if nodes {
			ofNodes.ByType = append(ofNodes.ByType, of)
		}
		return nodes
	})
	return perProxy(counts, c.Simulated-c.Nodes), perProxy(ofNodes, c.Nodes)
}

// perProxy is what was received over so many proxies; nil if there are none.
func perProxy(received xdsprobe.Counts, proxies int) *record.PerSidecar {
	if proxies == 0 {
		return nil
	}
	responses, bytes := received.AllResponses()
	return &record.PerSidecar{Responses: new(float64(responses) / float64(proxies)), Bytes: new(float64(bytes) / float64(proxies))}
}

// countCertificates counts what became of the pods' certificates.
func (m measurement) countCertificates() error {
	if m.driver.NoCertificates {
		return nil
	}
	c, pods := m.fleet.Workers.Counts(), m.fleet.Pods.Certificates()
	certificates := &record.Certificates{
		Issued:   &c.Certificates,
		Attempts: &c.CertificateRequests,
		// A certificate that came unasked is issued and no attempt.
		FailedAttempts: new(max(0, c.CertificateRequests-c.Certificates)),
		// Pods that never came have none either.
		Failed: new(int64(pods.Without + max(0, m.spec.Topology.Pods-pods.There))),
		Storm:  m.observed.storm,
		Note:   "failed: pods without a certificate at the end",
	}
	if m.driver.DeliversCertificates {
		certificates.Note += "; latencies.certificate: from the first request for the secret on the stream to the received secret"
	}
	if pods.Last.After(pods.First) {
		certificates.PerSecond = new(float64(pods.Issued) / pods.Last.Sub(pods.First).Seconds())
	}
	var err error
	certificates.Renewals, err = experiment.SaveHistogram(m.journal.Writer(), "certificateRenewals", m.fleet.Renewals)
	m.document.Certificates = certificates
	return err
}

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
	for _, each := range m.timeline.Windows() {
		if slot := m.document.Own.At(each.Name); slot != nil {
			w, own = each, *slot
		}
	}
	check := func(figure, about, expr string, at time.Time, ours int64) error {
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
		if int64(theirs) != ours {
			m.journal.Warn(record.Warning{About: about, Reason: record.ReasonCountsDiffer, Component: m.controlPlaneName(), Detail: expr, Values: map[string]float64{
				"theirs": math.Trunc(theirs), "ours": float64(ours),
			}})
		}
		return nil
	}
	counters := m.driver.Metrics.Counters
	now := time.Now() // counts do not change any more; how many are connected did
	if m.spec.RealSidecars > 0 {
		// What real sidecars request, scaler does not count.
		return check("connected", "pods.connected", counters.Connected, w.End, int64(m.spec.Topology.Pods))
	}
	var errs []error
	for _, t := range slices.SortedFunc(maps.Keys(counters.Responses), convergence.Type.Compare) {
		ours := m.document.XDS.Responses[t.String()]
		for _, also := range counters.AlsoCounts[t] {
			ours += m.document.XDS.Responses[also.String()]
		}
		errs = append(errs, check("totalResponses"+t.String(), "xds.responses."+t.String(), counters.Responses[t], now, ours))
	}
	errs = append(errs, check("connected", "pods.connected", counters.Connected, w.End, int64(w.Streams)))
	if m.document.Certificates == nil {
		return errors.Join(errs...)
	}
	return errors.Join(append(errs,
		check("totalCertificateRequests", "certificates.attempts", counters.CertificateRequests, now, *m.document.Certificates.Attempts),
		check("totalCertificates", "certificates.issued", counters.Certificates, now, *m.document.Certificates.Issued),
	)...)
}

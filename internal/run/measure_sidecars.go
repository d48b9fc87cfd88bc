package run

import (
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/record"
)

// measureSidecars computes the counts of the simulated sidecars, and the latencies of their starts.
func (m measurement) measureSidecars() error {
	x := worker.XDSCounts(m.fleet.Workers.Counts())
	x.ConfigurationBytes, x.ConfigurationResources = m.observed.holdings.Bytes, m.observed.holdings.Resources
	if p := m.document.Proxies; p != nil {
		p.PerNode = m.observed.perNode
		if held := m.observed.holdings.Nodes; held != nil {
			p.ConfigurationBytes, p.ConfigurationResources = held.Bytes, held.Resources
		}
		if held := m.observed.holdings.Waypoints; held != nil && p.Waypoints != nil {
			p.Waypoints.ConfigurationBytes, p.Waypoints.ConfigurationResources = held.Bytes, held.Resources
		}
	}
	x.PerSidecar = m.observed.perSidecar
	if m.driver.Proxy.XDS == nil {
		x.Acks, x.Nacks = nil, nil
	}
	x.Rates = &record.ByPhase[*record.Rates]{}
	for _, w := range m.windows {
		if slot, seconds := x.Rates.At(w.Name), w.End.Sub(w.Begin).Seconds(); slot != nil && seconds > 0 {
			*slot = &record.Rates{ResponsesPerSecond: new(float64(w.Responses) / seconds), BytesPerSecond: new(float64(w.Bytes) / seconds)}
		}
	}
	m.document.XDS = x
	if err := m.countCertificates(); err != nil {
		return err
	}
	if p := m.document.Phase(record.PhaseRollout); p != nil {
		real, pods := m.spec.Mesh.Sidecars.Real, m.spec.Pods()
		others := real + m.dataplane().served()
		if p.EndedBy == record.EndedByQuiescent {
			m.observed.latencies.Forgo(pods - others)
		}
		m.observed.latencies.Lose(pods, others, real-m.spec.sidecarProcesses())
	}
	return m.observed.latencies.Save(m.journal, "", &m.document.Latencies)
}

// countCertificates counts what became of the pods' certificates.
func (m measurement) countCertificates() error {
	if m.driver.Proxy.Certificates == nil {
		return nil
	}
	c, pods := m.fleet.Workers.Counts(), m.fleet.Pods.Certificates()
	certificates := &record.Certificates{
		Issued:   &c.Certificates,
		Attempts: &c.CertificateRequests,
		// A certificate that came unasked is issued and no attempt.
		FailedAttempts: new(max(0, c.CertificateRequests-c.Certificates)),
		// Pods that never came have none either.
		Failed: new(int64(pods.Without + max(0, m.spec.Pods()-pods.There))),
		Storm:  m.observed.storm,
		Note:   "failed: pods without a certificate at the end",
	}
	if !m.driver.Proxy.Certificates.Requested {
		certificates.Note += "; latencies.certificate: from the first request for the secret on the stream to the received secret"
	}
	if pods.Last.After(pods.First) {
		certificates.PerSecond = new(float64(pods.Issued) / pods.Last.Sub(pods.First).Seconds())
	}
	var err error
	certificates.Renewals, err = m.journal.SaveLatency("certificateRenewals", m.fleet.Renewals)
	m.document.Certificates = certificates
	return err
}

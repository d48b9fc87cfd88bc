package run

import (
	"fmt"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/run/faults"
	"scaler.mesh/scaler/pkg/record"
)

// remote is where an external control plane is.
func (s Spec) remote() controlplane.Remote {
	r := s.Remote
	_, r.Address, _ = experiment.FindDriver(s.Drivers, s.ControlPlane) // Validate reports one that there is not
	return r
}

// checkExternal checks what an external control plane cannot be asked for, and
// what only one can.
func (s Spec) checkExternal(d controlplane.Driver) error {
	if !d.External {
		for _, f := range s.remoteFlags() {
			if f.value != "" {
				return fmt.Errorf("parsing --%s %q: want none with --control-plane %s, which scaler starts and connects to itself", f.name, f.value, s.ControlPlane)
			}
		}
		return nil
	}
	if err := d.Check(s.remote()); err != nil {
		return err
	}
	for _, f := range s.ownFlags() {
		if f.value != "" {
			return fmt.Errorf("parsing --%s %q: want none with --control-plane %s, which scaler neither starts nor configures", f.name, f.value, s.ControlPlane)
		}
	}
	for _, fault := range s.Faults {
		if fault.Phase == record.PhaseProbe {
			return fmt.Errorf("parsing --fault %q: want another phase with --control-plane %s, with which there is no probe phase", fault, s.ControlPlane)
		}
		if fault.Kind == faults.KillControlPlane || fault.Kind == faults.RestartControlPlane || fault.OfReplicas() {
			return fmt.Errorf("parsing --fault %q: want one that does not end --control-plane %s, which scaler did not start", fault, s.ControlPlane)
		}
	}
	return nil
}

// given is a flag and its value; "" where it is not given.
type given struct{ name, value string }

// remoteFlags are those of external control planes alone.
func (s Spec) remoteFlags() []given {
	r := s.Remote
	return []given{
		{"plaintext", text(r.Plaintext)}, {"tls-ca", r.TLSCA}, {"tls-cert", r.TLSCert}, {"tls-key", r.TLSKey},
		{"token-file", r.TokenFile}, {"server-name", r.ServerName},
		{"node-id", r.NodeID}, {"node-cluster", r.NodeCluster}, {"metadata", r.Metadata}, {"expect", r.Expect},
	}
}

// ownFlags are those of control planes that scaler starts.
func (s Spec) ownFlags() []given {
	env, replicas := "", ""
	if s.Replicas > 1 {
		replicas = text(s.Replicas)
	}
	if len(s.ControlPlaneEnv) > 0 {
		env = s.ControlPlaneEnv[0]
	}
	return []given{
		{"mtls", s.Own.MTLS}, {"scope", s.Own.Scope}, {"authz", s.Own.Authz},
		{"certificate-storm", text(s.CertificateStorm)}, {"certificate-lifetime", text(s.CertificateLifetime)},
		{"real-sidecars", text(s.RealSidecars)}, {"change", s.Change.String()},
		{"replicas", replicas},
		{"control-plane-cpus", text(s.ControlPlaneCPUs)}, {"control-plane-memory", text(s.ControlPlaneMemory)}, {"control-plane-env", env},
	}
}

// text is a value as it prints, "" for a zero one.
func text[T comparable](value T) string {
	if value == *new(T) {
		return ""
	}
	return fmt.Sprint(value)
}

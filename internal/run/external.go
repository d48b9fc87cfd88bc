package run

import (
	"scaler.mesh/scaler/pkg/scenario"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
)

// remote returns the address of an external control plane, and how sidecars connect to it.
func (s Spec) remote() controlplane.Remote {
	c := s.ControlPlane.Connection
	r := controlplane.Remote{
		Plaintext: c.Plaintext, TLSCA: c.TLSCA, TLSCert: c.TLSCert, TLSKey: c.TLSKey, TokenFile: c.TokenFile, ServerName: c.ServerName,
		NodeID: c.NodeID, NodeCluster: c.NodeCluster, Metadata: c.Metadata, Expect: c.Expect,
	}
	_, r.Address, _ = drivers.Find(s.Drivers, s.ControlPlane.Name) // Validate refuses an unknown one
	return r
}

// checkExternal checks what an external control plane cannot be asked for, and
// what only one can.
func (s Spec) checkExternal(d controlplane.Driver) error {
	if d.External == nil {
		return nil
	}
	if err := d.External(s.remote()); err != nil {
		return err
	}
	if err := s.refuse([]refusal{
		{s.Mesh.Settings.MTLS != "", "mesh.settings.mtls"},
		{s.Mesh.Settings.Scope != "", "mesh.settings.scope"},
		{s.Mesh.Settings.Authz != "", "mesh.settings.authz"},
		{s.Load.CertificateStorm, "load.certificateStorm"},
		{s.Mesh.Sidecars.CertificateLifetime > 0, "mesh.sidecars.certificateLifetime"},
		{s.Mesh.Sidecars.Real > 0, "mesh.sidecars.real"},
		{s.Load.Changes.PerSecond > 0, "load.changes"},
		{s.ControlPlane.Replicas > 1, "controlPlane.replicas"},
		{s.ControlPlane.Processors > 0, "controlPlane.processors"},
		{s.ControlPlane.Memory > 0, "controlPlane.memory"},
		{len(s.ControlPlane.Env) > 0, "controlPlane.env"},
		{len(s.ControlPlane.Set) > 0, "controlPlane.set"},
	}, "none with controlPlane.name "+s.ControlPlane.Name+", which scaler neither starts nor configures"); err != nil {
		return err
	}
	for _, fault := range s.Load.Faults {
		if fault.Phase == scenario.PhaseProbe {
			return scenario.Refuse("load.faults", fault, "another phase with controlPlane.name %s, with which there is no probe phase", s.ControlPlane.Name)
		}
		if on := fault.Described().On; on == scenario.OnControlPlane || on == scenario.OnReplicas {
			return scenario.Refuse("load.faults", fault, "one that does not end controlPlane.name %s, which scaler did not start", s.ControlPlane.Name)
		}
	}
	return nil
}

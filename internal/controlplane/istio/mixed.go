package istio

import (
	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
)

const (
	mixedName = "mixed" // of the data plane
	// hboneSetting is the setting that the ambient profile has in meshConfig.defaultConfig.proxyMetadata: sidecars
	// that are injected then accept HBONE, and discover all workloads.
	hboneSetting = metaPrefix + "ENABLE_HBONE"
	// scopedSetting exists from 1.31 on, and is on by default.
	scopedSetting = "AMBIENT_SCOPED_ADDRESS_PUSHES"
)

// mixedDataplane returns the data plane of a mesh of which some namespaces have sidecars and others
// ztunnels. istiod is installed as by the ambient profile, as in a migration.
//
// A sidecar requests what a waypoint does: Envoy's types and, because its metadata has ENABLE_HBONE, all
// workloads (pkg/bootstrap/config.go of Istio).
func mixedDataplane() controlplane.Dataplane {
	d := waypointDataplane()
	d.Modes, d.Proxy.CheckVersion, d.Mixed = controlplane.StandardModes(), checkProxyVersion, true
	return d
}

// hasZtunnels reports whether istiod serves ztunnels. Else all that is about ambient mode is as the chart has it: off.
func (c *ControlPlane) hasZtunnels() bool { return c.opts.Dataplane == Ambient || c.mixed() }

// mixed reports whether pods of some namespaces have sidecars although istiod serves ztunnels: see ambient.Serves.
func (c *ControlPlane) mixed() bool { return c.opts.Dataplane == mixedName }

// hasSidecars reports whether the pods of a namespace of a synthetic mesh have sidecars.
func (c *ControlPlane) hasSidecars(mesh topology.Mesh, namespace string) bool {
	return !c.hasZtunnels() || c.mixed() && controlplane.MixedSidecars(mesh, namespace)
}

// isZtunnel reports whether a pod is one of ztunnel's DaemonSet.
func isZtunnel(pod *corev1.Pod) bool {
	return pod.Namespace == namespace && pod.Labels["app"] == ztunnelName
}

// tunnels returns the resources that a sidecar has in a mixed mesh, in addition: listeners and clusters through which it
// reaches pods of ztunnels (PILOT_ENABLE_SENDING_HBONE), and those by which it accepts HBONE itself
// (EnableHBONEListen and BuildListeners of istiod's pilot/pkg/networking/core).
func (c *ControlPlane) tunnels() []convergence.Key {
	if !c.mixed() {
		return nil
	}
	return []convergence.Key{
		{Type: convergence.LDS, Name: "connect_originate"}, {Type: convergence.LDS, Name: "connect_terminate"}, {Type: convergence.LDS, Name: "main_internal"},
		{Type: convergence.CDS, Name: "connect_originate"}, {Type: convergence.CDS, Name: "main_internal"},
	}
}

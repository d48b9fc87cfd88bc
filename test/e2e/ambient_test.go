//go:build e2e

package e2e

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/pkg/record"
)

// internal/run has the strict mode, with what istiod itself says.
var _ = Describe("30 pods without sidecars on 3 nodes", func() {
	It("are served by the ztunnels of their nodes", func() {
		const pods, nodes, services, probes = 30, 3, 3, 4
		where := newPlace()
		session := where.start("rollout", "--dilate", "1", "--pods", "30", "--dataplane", "ambient", "--pods-per-node", "10",
			"--baseline", "2s", "--settle", "2s", "--steady", "5s", "--probes", "4", "--calibrate=false",
			"--change", "2/s", "--change-duration", "5s", "--fault", "reset-streams:50%@steady", "--out", where.out, "-o", "json")
		Expect(wait(session)).To(Equal(exitDone))
		where.expectNothingLeft()
		run := printed(session)
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(run.Dataplane()).To(Equal("ambient"))
		Expect(run.Environment.Knobs.Scope).To(BeEmpty())
		Expect(run.Environment.ControlPlane.Settings).To(HaveKeyWithValue("PILOT_ENABLE_AMBIENT", "true"))
		Expect(known(run.Proxies)).To(Equal(record.Proxies{Name: "ztunnel", Nodes: nodes, Ready: new(nodes)}))
		Expect(known(run.Pods.Ready)).To(Equal(pods))
		Expect(known(run.Pods.Converged)).To(Equal(pods))
		// What they hold, and what istiod counts, is exactly what is expected.
		for _, w := range run.Warnings {
			Expect(w.Reason).NotTo(BeElementOf(record.ReasonCountsDiffer, record.ReasonUnexpectedResources, record.ReasonMissingResources), w.Text)
		}
		Expect(known(run.XDS.Nacks)).To(BeZero())
		Expect(run.XDS.Responses["Address"]).To(BeNumerically(">", 0))
		Expect(run.XDS.Responses["Authorization"]).To(BeNumerically(">", 0))
		Expect(run.XDS.Responses).NotTo(HaveKey("CDS"))
		// Each ztunnel has a certificate of each account on its node, of which there are no
		// more than services.
		Expect(known(run.Certificates.Issued)).To(And(BeNumerically(">=", services), BeNumerically("<=", nodes*services+probes)))
		Expect(known(run.Certificates.Failed)).To(BeZero())
		for _, kind := range []record.ChangeKind{record.EndpointAdd, record.EndpointRemove, record.EndpointHealth, record.PolicyChange, record.ServiceChange} {
			Expect(known(run.Latencies.Push[kind]).Count).To(BeEquivalentTo(probes*nodes), string(kind))
			Expect(known(run.Latencies.Push[kind]).Lost).To(BeZero(), string(kind))
		}
		Expect(run.Latencies.Push).NotTo(HaveKey(record.RouteChange))
		Expect(run.Latencies.CompleteConfiguration).To(BeNil(), "pods have no sidecar that starts")
		Expect(known(known(run.Change).Push)).To(And(HaveField("Count", BeEquivalentTo(changesOf(run, 10)*nodes)), HaveField("Lost", BeZero())))
		Expect(known(run.Faults[0].Reconnected)).To(Equal(2)) // half of three
		report := where.start("report", where.out)
		Expect(wait(report)).To(Equal(exitDone))
		Expect(report.Out).To(gbytes.Say("ambient"))
	})
})

var _ = Describe("10 pods without sidecars whose services have waypoints", func() {
	It("have everything that is expected in ztunnels and waypoints", acceptance, func() {
		const pods, services, probes = 10, 2, 2
		where := newPlace()
		session := where.start("rollout", "--dilate", "1", "--pods", "10", "--services", "2", "--dataplane", "ambient", "--waypoints", "service", "--mode", "strict",
			"--baseline", "2s", "--settle", "2s", "--steady", "5s", "--probes", "2", "--change", "2/s:route", "--change-duration", "4s", "--calibrate=false", "--out", where.out, "-o", "json")
		Expect(wait(session)).To(Equal(exitDone))
		where.expectNothingLeft()
		run := printed(session)
		Expect(run.Waypoints()).To(Equal("service"))
		Expect(known(known(known(run.Proxies).Waypoints).Ready)).To(Equal(services))
		Expect(known(run.Pods.Converged)).To(Equal(pods))
		for _, w := range run.Warnings {
			Expect(w.Reason).NotTo(BeElementOf(record.ReasonCountsDiffer, record.ReasonUnexpectedResources, record.ReasonMissingResources, record.ReasonStrays), w.Text)
		}
		Expect(known(run.XDS.Nacks)).To(BeZero())
		for _, kind := range []string{"CDS", "EDS", "LDS", "Workload", "Address", "Authorization"} {
			Expect(run.XDS.Responses[kind]).To(BeNumerically(">", 0), kind)
		}
		Expect(run.XDS.Responses["RDS"]).To(BeZero(), "routes are in the listeners")
		Expect(known(known(run.Proxies).Waypoints).ConfigurationResources["EDS"]).To(BeEquivalentTo(1))
		for kind, push := range run.Latencies.Push {
			Expect(push.Count).To(BeEquivalentTo(probes), string(kind)) // there is one node, and each service has one waypoint
			Expect(push.Lost).To(BeZero(), string(kind))
		}
		Expect(run.Latencies.Push).To(HaveKey(record.RouteChange))
		Expect(known(known(run.Change).Push)).To(And(HaveField("Count", BeEquivalentTo(changesOf(run, 8))), HaveField("Lost", BeZero())), "a service's waypoint alone has its routes")
	})
})

var _ = Describe("A captured mesh of which some pods are in ambient mode", func() {
	It("has as many ztunnels as it had, its waypoint and its sidecars, and can be changed", func() {
		const probes, nodes = 2, 4
		where := newPlace()
		file := filepath.Join(filepath.Dir(where.state), "mesh.yaml")
		Expect(wait(where.start("capture", "testdata/ambient.yaml", "--output-file", file))).To(Equal(exitDone))
		run, again := replay(where, file, "mixed", "--probes", "2", "--change", "2/s", "--change-duration", "4s")
		Expect(run.Dataplane()).To(Equal("mixed with captured waypoints"))
		proxies := known(run.Proxies)
		Expect(known(proxies.PerNode).Bytes).To(HaveValue(BeNumerically(">", 0)))
		proxies.PerNode, proxies.ConfigurationBytes, proxies.ConfigurationResources = nil, nil, nil
		waypoints := known(proxies.Waypoints)
		Expect(known(waypoints.Ready)).To(Equal(2))
		Expect(waypoints.ConfigurationResources["EDS"]).To(BeEquivalentTo(4), "a cluster for each port of both services, and two for the one of no stated protocol")
		proxies.Waypoints = nil
		Expect(proxies).To(Equal(record.Proxies{Name: "ztunnel", Nodes: nodes, Ready: new(nodes), Namespaces: []string{"shop"}, Sidecars: new(4)}))
		Expect(run.Waypoints()).To(Equal("captured"))
		Expect(known(run.Pods.Ready)).To(Equal(9), "5 in ambient mode, 3 with sidecars, and a gateway")
		Expect(known(run.Pods.Converged)).To(Equal(9))
		Expect(run.Phase(record.PhaseRollout).EndedBy).To(Equal(record.EndedByConverged))
		Expect(run.Mesh.Outside).To(Equal(2))
		for _, not := range run.Mesh.NotChecked {
			Expect(not.What).NotTo(Equal(record.UncheckedAmbient), "its waypoint is one")
		}
		Expect(known(run.XDS.Nacks)).To(BeZero())
		for _, kind := range []string{"CDS", "EDS", "LDS", "Workload", "Address", "Authorization"} {
			Expect(run.XDS.Responses[kind]).To(BeNumerically(">", 0), kind)
		}
		Expect(run.Environment.ControlPlane.Settings).To(HaveKeyWithValue("PILOT_ENABLE_AMBIENT", "true"))
		for kind, least := range map[record.ChangeKind]int{
			record.EndpointAdd: probes * nodes, record.EndpointRemove: probes * nodes, record.EndpointHealth: probes * nodes,
			record.ServiceChange: probes * nodes, record.PolicyChange: probes * nodes, record.RouteChange: probes * 2,
		} {
			Expect(known(run.Latencies.Push[kind]).Count).To(BeNumerically(">=", least), string(kind))
			Expect(known(run.Latencies.Push[kind]).Lost).To(BeZero(), string(kind))
		}
		Expect(known(known(run.Change).Push)).To(And(HaveField("Count", BeNumerically(">=", changesOf(run, 8)*nodes)), HaveField("Lost", BeZero())))
		for _, w := range run.Warnings {
			Expect(w.Reason).NotTo(Equal(record.ReasonStrays), w.Text)
		}
		mesh := readMesh(file)
		Expect(again.Objects).To(Equal(mesh.Objects))
		Expect(again.Pods()).To(Equal(mesh.Pods()))
		Expect(again.Services).To(Equal(mesh.Services))
	})
})

//go:build e2e

package e2e

import (
	"context"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

var _ = Describe("probes", func() {
	It("count everybody, also while the control plane is killed", func() {
		const pods, probes = 20, 4
		where := newPlace()
		session := where.rollout(pods, "--probes", "4", "--fault", "kill-control-plane@probe", "--calibrate=false")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(run.Status).To(Equal(record.StatusCompleted))
		concerned := map[record.ChangeKind]int{
			record.EndpointAdd: pods, record.EndpointRemove: pods, record.EndpointHealth: pods, record.RouteChange: pods,
			record.PolicyChange: pods / run.ServiceCount(),
		}
		for kind, sidecars := range concerned {
			push, propagation := run.Latencies.Push[kind], run.Latencies.Propagation[kind]
			Expect(push.Count+push.Lost).To(BeEquivalentTo(probes*sidecars), "%s", kind)
			Expect(known(propagation.Last).Count+known(propagation.Last).Lost).To(BeEquivalentTo(probes), "%s", kind)
			if !propagation.Last.Unknown() && !push.Unknown() { // on a busy machine the start of a push may be seen after its end
				Expect(known(known(propagation.Last).Max)).To(BeNumerically(">=", known(push.Max)), "%s", kind)
			}
			if kind != record.EndpointHealth {
				Expect(push.Lost).To(BeZero(), "%s", kind)
			}
		}
		Expect(run.Faults).To(HaveLen(1))
		Expect(run.Faults[0].Phase).To(Equal(record.PhaseProbe))
		Expect(known(run.Faults[0].Reconnected)).To(Equal(pods))
		Expect(known(known(run.ControlPlane.Probe).Restarts)).To(Equal(1))
		Expect(known(known(run.ControlPlane.Steady).Restarts)).To(BeZero())
		// The change that was made while no update could be sent is the slowest, or lost.
		health, add := known(run.Latencies.Push[record.EndpointHealth]), known(run.Latencies.Push[record.EndpointAdd])
		Expect(health.Lost > 0 || health.Unknown() || add.Unknown() || known(health.Max) > known(add.P50)).To(BeTrue())
	})

	It("have their objects deleted on an interrupt, and the record is readable", acceptance, func(ctx SpecContext) {
		// istiod's pause before it pushes is long enough to interrupt a change in it.
		where := newPlace()
		session := where.rollout(10, "--probes", "1", "--calibrate=false", "--control-plane-env", "PILOT_DEBOUNCE_AFTER=3s")
		where.reach(session, record.PhaseProbe)
		sockets := where.listening(session)
		changes := where.virtualServices(ctx)
		added := next(ctx, changes, watch.Added)
		// The API server must not end before it has reported the deletion: scaler ends
		// Prometheus first, and waits while that does nothing.
		recorder := where.child("prometheus")
		Expect(syscall.Kill(recorder, syscall.SIGSTOP)).To(Succeed())
		DeferCleanup(func() { _ = syscall.Kill(recorder, syscall.SIGCONT) }) // it may have ended
		interrupt(session)
		Expect(next(ctx, changes, watch.Deleted)).To(Equal(added))
		Expect(syscall.Kill(recorder, syscall.SIGCONT)).To(Succeed())
		where.expectInterrupted(session, sockets, "baseline duration, rollout converged, settle duration, steady duration, probe interrupt", "ctrl-C")
		Expect(string(where.event("objectsDeleted"))).NotTo(ContainSubstring(`"error"`), "its time is its own")
	})
})

var _ = Describe("certificates of a short life", func() {
	It("are renewed as an agent renews them, and counted", func() {
		const pods = 20
		where := newPlace()
		session := where.rollout(pods, longSettle, "--certificate-lifetime", "10s", "--steady", "12s", "--calibrate=false")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(run.Scenario.Mesh.Sidecars.CertificateLifetime).To(Equal(scenario.Duration(10 * time.Second)))
		Expect(known(run.Certificates.Renewals).Count).To(BeNumerically(">=", pods), "half of a life passes twice in steady")
		Expect(known(run.Certificates.Issued)).To(Equal(pods + known(run.Certificates.Renewals).Count))
		Expect(known(run.Latencies.Certificate).Count).To(BeEquivalentTo(pods), "renewals are counted separately")
		for _, w := range run.Warnings {
			Expect(w.Reason).NotTo(Equal(record.ReasonCountsDiffer), "%s: %s", w.About, w.Text)
		}
	})
})

// virtualServices returns the changes of Istio's VirtualServices in the one cluster
// of this place from now on.
func (p place) virtualServices(ctx context.Context) <-chan watch.Event {
	GinkgoHelper()
	kubeconfigs, err := filepath.Glob(filepath.Join(p.state, "clusters", "*", "kubeconfig*"))
	Expect(err).NotTo(HaveOccurred())
	Expect(kubeconfigs).To(HaveLen(1))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigs[0])
	Expect(err).NotTo(HaveOccurred())
	client, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	kind := schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
	list, err := client.Resource(kind).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	changes, err := client.Resource(kind).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(changes.Stop)
	return changes.ResultChan()
}

// next returns the name of the object of the next event of a type.
func next(ctx context.Context, events <-chan watch.Event, kind watch.EventType) string {
	GinkgoHelper()
	for {
		select {
		case event, open := <-events:
			Expect(open).To(BeTrue(), "the API server went before there was one: "+string(kind))
			if event.Type == kind {
				return event.Object.(metav1.Object).GetName()
			}
		case <-ctx.Done():
			Fail("there was none: " + string(kind))
		}
	}
}

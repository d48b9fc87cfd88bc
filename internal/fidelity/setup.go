package fidelity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	polling "k8s.io/apimachinery/pkg/util/wait"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/controlplane/istio"
	"scaler.mesh/scaler/internal/fidelity/wiretap"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/place/embedded"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/scenario"
)

// runName labels everything that a comparison makes in its cluster.
const runName = "fidelity"

// envoyVersion is the version of Envoy whose behaviour is simulated.
const envoyVersion = "1.40"

// connectionAge is the age at which istiod closes connections. It is longer than all
// changes take, so that both sidecars stay on one stream. The end of a stream is compared
// separately, by breaking it on purpose.
const connectionAge = 48 * time.Hour

// mostConnected returns the service with the most callers and callees together.
func mostConnected(mesh topology.Mesh) int {
	edges := make([]int, len(mesh.Services))
	for i, s := range mesh.Services {
		edges[i] += len(s.Calls)
		for _, callee := range s.Calls {
			edges[callee]++
		}
	}
	most := 0
	for i := range edges {
		if edges[i] > edges[most] {
			most = i
		}
	}
	return most
}

// prepare gets ready what does not run.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.driver, err = r.what.driver(); err != nil {
		return err
	}
	if err := r.findZtunnel(ctx); err != nil {
		return err
	}
	programs := r.spec.Programs
	programs.Progress = r.log
	r.programs, err = component.Paths(ctx, programs, append(drivers.RunPrograms(r.driver), r.driver.SidecarPrograms...)...)
	if err != nil {
		return err
	}
	if err := r.what.check(r, ctx); err != nil {
		return err
	}
	r.keys, err = svid.NewKeyPool()
	return err
}

// checkEnvoy checks that there is an Envoy of the simulated version.
func (r *run) checkEnvoy(ctx context.Context) error {
	programs := r.spec.Programs
	programs.Progress = r.log
	envoy, err := component.Find(ctx, programs, component.Envoy)
	if err != nil {
		return err
	}
	if envoy.Problem != "" {
		return fmt.Errorf("envoy %s %s: want %s, which simulated sidecars simulate", envoy.Path, envoy.Problem, envoyVersion)
	}
	reported, err := new(component.Versions).Of(ctx, component.Envoy, r.programs[component.Envoy])
	if err != nil {
		return err
	}
	if !strings.HasPrefix(reported.Version, envoyVersion+".") {
		return fmt.Errorf("envoy %s is of version %q: want %s, which simulated sidecars simulate", envoy.Path, reported.Version, envoyVersion)
	}
	r.result.Envoy = reported.Version
	return nil
}

// logDir returns the folder of the cluster's logs. All files of a comparison are in the
// folder of the run's group, where `scaler cleanup` finds them.
func (r *run) logDir() string { return filepath.Join(r.group.Dir(), "logs") }

func (r *run) startCluster(ctx context.Context) (_ steps.Undo, err error) {
	dir := filepath.Join(r.spec.State, "clusters", fmt.Sprintf("%s-%d", runName, os.Getpid()))
	if r.group, err = process.OpenGroup(dir, process.GroupOptions{}); err != nil {
		return nil, err
	}
	r.env, err = embedded.Start(ctx, cluster.Options{
		Group:      r.group,
		Programs:   embedded.Programs(r.programs),
		KwokConfig: kwok.Stages(),
		Progress:   r.log,
	})
	if err != nil {
		return r.group.Remove, err
	}
	r.Clients, err = place.Connect(r.env)
	return r.group.Remove, err
}

func (r *run) startIstiod(ctx context.Context) (_ steps.Undo, err error) {
	o := controlplane.StartOptions{
		Programs:   r.programs,
		Kubeconfig: r.env.API().Kubeconfig,
		REST:       r.Config,
		Group:      r.group,
		LogDir:     r.logDir(),
		Progress:   r.log,
	}
	r.what.configure(&o)
	if r.istiod, err = istio.Start(ctx, o, connectionAge); err == nil {
		r.result.ControlPlane = r.istiod.Describe().Name + " " + r.istiod.Describe().Version
	}
	return nil, err // it is in the run's group
}

// listen starts the wiretap.
func (r *run) listen(ctx context.Context) (steps.Undo, error) {
	certificate, err := r.istiod.ServingCertificate(ctx)
	if err != nil {
		return nil, err
	}
	address, name, roots := r.istiod.Serving()
	o := wiretap.Options{Upstream: address, ServerName: name, RootPEM: roots, Certificate: certificate}
	if r.place != nil {
		if o.Also, err = r.place.Listen(ctx); err != nil {
			return nil, err
		}
		r.inside = o.Also.Addr().String()
	}
	if r.tap, err = wiretap.Listen(o); err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- r.tap.Run(life) }()
	return func(context.Context) error { end(); return <-done }, nil
}

// makeMesh makes the mesh without the objects of its settings, with every pod Ready, and
// keeps later pods Ready.
func (r *run) makeMesh(ctx context.Context) (steps.Undo, error) {
	for i := range r.what.nodes {
		if _, err := r.Client.CoreV1().Nodes().Create(ctx, kwok.Node(i, runName), metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("creating a node: %w", err)
		}
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	var failed error
	watching.Go(func() {
		failed = observe.Run(life, observe.Options{Client: r.Client, Run: runName, OnPod: func(e observe.PodEvent) {
			if _, reported := e.Pod.Annotations[kwok.SidecarAnnotation]; !reported && e.Kind == observe.Added {
				_ = r.report(life, e.Pod, kwok.SidecarReady) // it is not needed for a pod that has been deleted again
			}
		}})
	})
	stop := func(context.Context) error { end(); watching.Wait(); return failed }

	parts := r.istiod.Parts()
	applier := &workload.Applier{
		Client: r.Client, Run: runName, Mesh: r.mesh,
		NamespaceLabels: func(namespace string) map[string]string { return parts.NamespaceLabels(r.mesh, namespace) },
		PodAnnotations:  func(namespace string) map[string]string { return parts.PodAnnotations(r.mesh, namespace) },
	}
	if err := applier.Surroundings(ctx); err != nil {
		return stop, err
	}
	for _, step := range workload.Plan(r.mesh, scenario.Arrival{}) {
		if err := applier.Step(ctx, step); err != nil {
			return stop, err
		}
	}
	for i := range r.mesh.Services {
		if err := r.awaitReplicas(ctx, i, r.mesh.Services[i].Pods); err != nil {
			return stop, err
		}
	}
	return stop, r.what.choose(r, ctx)
}

// choosePods chooses the two pods that get sidecars.
func (r *run) choosePods(ctx context.Context) error {
	s := r.mesh.Services[r.observed]
	pods, err := r.Client.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: kwok.ServiceLabel + "=" + s.Name})
	if err != nil {
		return fmt.Errorf("listing the pods of %s: %w", s.Name, err)
	}
	if len(pods.Items) < len(r.pods) {
		return fmt.Errorf("service %s has %d pods, want %d", s.Name, len(pods.Items), len(r.pods))
	}
	for side := range r.pods {
		r.pods[side] = &pods.Items[side]
	}
	return nil
}

// report sets the state that a pod's sidecar reports. It is no error if the pod does not
// exist any more.
func (r *run) report(ctx context.Context, pod *corev1.Pod, value string) error {
	err := r.ReportSidecar(ctx, pod.Namespace, pod.Name, value)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// awaitReplicas returns when a service has exactly this number of pods, all Ready.
func (r *run) awaitReplicas(ctx context.Context, service, replicas int) error {
	s := r.mesh.Services[service]
	err := polling.PollUntilContextTimeout(ctx, 50*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		d, err := r.Client.AppsV1().Deployments(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return d.Status.ObservedGeneration == d.Generation && int(d.Status.Replicas) == replicas && int(d.Status.ReadyReplicas) == replicas, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waiting for %s to have %d pods", s.Name, replicas), err)
	}
	return nil
}

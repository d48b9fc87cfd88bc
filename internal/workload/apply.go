package workload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
)

// Applier makes a mesh's objects in a cluster: namespaces, service accounts, services,
// the objects of its settings, and one Deployment for each service, scaled as a plan
// says.
type Applier struct {
	Client    kubernetes.Interface // must not limit its own rate, or arrival is measured wrong
	Run       string               // value of the run label on everything made
	Mesh      topology.Mesh
	PodLabels map[string]string // what the control plane needs to see a pod as its own; nil = none
	// NamespaceLabels returns the labels that mark a namespace as part of the mesh; nil =
	// none.
	NamespaceLabels func(namespace string) map[string]string
	// PodAnnotations returns the annotations of the pods of a namespace; nil = none.
	PodAnnotations func(namespace string) map[string]string
	// Labels returns further labels of a namespace (service "") or of a service; nil =
	// none.
	Labels func(namespace, service string) map[string]string

	Gateway func(*corev1.PodTemplateSpec) // makes pods gateways; nil = the mesh has none

	// Nodes is the pool of nodes that the pods are scheduled to; the zero value =
	// kwok.Shared.
	Nodes kwok.Pool

	// Templates are the pod templates, by service; nil = as the services say. With
	// templates, the namespaces, service accounts and services are taken from Around
	// instead of being made from Mesh.
	Templates []corev1.PodTemplateSpec
	Around    []*unstructured.Unstructured
	// Annotations are the annotations of the Deployments with Templates, by service; nil = none.
	Annotations []map[string]string

	// Objects are the objects of the mesh's options, made once the namespaces and
	// services exist. They are applied through Dynamic, which may be nil if there are
	// none.
	Objects []*unstructured.Unstructured
	Dynamic dynamic.Interface

	RealImage string // of the application of pods on real nodes; needed where services have some

	GracePeriod time.Duration // for which pods run on after they were deleted; 0 = they disappear at once

	// Scaling is called, just before the request is sent, when the Deployment of a
	// service is created, or scaled up. It is called from several goroutines; nil = it is
	// not called.
	Scaling func(service topology.Service, replicas int, at time.Time)

	mu     sync.Mutex
	scaled map[int]*scaled // by index of the service
	spaces bool            // the namespaces were made
}

// scaled records the replicas that the Deployment of a service was scaled to.
type scaled struct {
	mu       sync.Mutex // held while a request is under way
	exists   bool
	replicas int
}

// Surroundings creates everything except the Deployments, that is, what exists before the
// first pod arrives.
func (a *Applier) Surroundings(ctx context.Context) error {
	if a.Templates != nil {
		around := a.Around
		if a.spaces { // with all their labels
			around = slices.DeleteFunc(slices.Clone(around), isNamespace)
		}
		return a.objects(ctx, append(slices.Clone(around), a.Objects...))
	}
	if err := a.namespaces(ctx); err != nil {
		return err
	}
	err := a.each(ctx, len(a.Mesh.Services), func(ctx context.Context, i int) error {
		s := a.Mesh.Services[i]
		account := a.account(s)
		err := create(ctx, "service account", s.Account, func(ctx context.Context) error {
			_, err := a.Client.CoreV1().ServiceAccounts(s.Namespace).Create(ctx, account, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
		return create(ctx, "service", s.Name, func(ctx context.Context) error {
			_, err := a.Client.CoreV1().Services(s.Namespace).Create(ctx, a.service(s), metav1.CreateOptions{})
			return err
		})
	})
	if err != nil || len(a.Objects) == 0 {
		return err
	}
	return a.objects(ctx, a.Objects)
}

// Prepare creates these objects and the namespaces of the mesh, before Surroundings is
// called.
func (a *Applier) Prepare(ctx context.Context, objects []*unstructured.Unstructured) error {
	if err := a.namespaces(ctx); err != nil {
		return err
	}
	return a.objects(ctx, objects)
}

// namespaces creates the namespaces of the mesh, once.
func (a *Applier) namespaces(ctx context.Context) error {
	if a.spaces {
		return nil
	}
	a.spaces = true
	if a.Templates != nil {
		return a.objects(ctx, slices.DeleteFunc(slices.Clone(a.Around), func(o *unstructured.Unstructured) bool { return !isNamespace(o) }))
	}
	return a.each(ctx, len(a.Mesh.Namespaces), func(ctx context.Context, i int) error {
		namespace := a.namespace(a.Mesh.Namespaces[i])
		return create(ctx, "namespace", namespace.Name, func(ctx context.Context) error {
			_, err := a.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
			return err
		})
	})
}

func isNamespace(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" }

// further returns the labels of a.Labels.
func (a *Applier) further(namespace, service string) map[string]string {
	if a.Labels == nil {
		return nil
	}
	return a.Labels(namespace, service)
}

func (a *Applier) podAnnotations(namespace string) map[string]string {
	if a.PodAnnotations == nil {
		return nil
	}
	return maps.Clone(a.PodAnnotations(namespace))
}

// Step scales the Deployments of one step to their replicas. It may be called while an
// earlier step of a plan is still in progress: a Deployment that a later step has already
// scaled is not changed.
func (a *Applier) Step(ctx context.Context, step Step) error {
	services := slices.Collect(maps.Keys(step.Replicas))
	return a.each(ctx, len(services), func(ctx context.Context, i int) error {
		return a.scale(ctx, services[i], step.Replicas[services[i]])
	})
}

// scale creates the Deployment of a service, or changes its replicas.
func (a *Applier) scale(ctx context.Context, service, replicas int) error {
	s := a.Mesh.Services[service]
	state := a.state(service)
	state.mu.Lock()
	defer state.mu.Unlock()
	exists := state.exists
	if exists && replicas <= state.replicas {
		return nil
	}
	state.exists, state.replicas = true, replicas
	if a.Scaling != nil {
		a.Scaling(s, replicas, time.Now())
	}
	if real := min(s.Real, replicas); real > 0 {
		if err := a.bring(ctx, exists, a.realDeployment(s, real)); err != nil {
			return err
		}
		replicas -= real
	}
	return a.bring(ctx, exists, a.deployment(service, replicas))
}

// bring creates a Deployment or, if it exists, changes its replicas.
func (a *Applier) bring(ctx context.Context, exists bool, d *appsv1.Deployment) error {
	deployments := a.Client.AppsV1().Deployments(d.Namespace)
	if !exists {
		return create(ctx, "deployment", d.Name, func(ctx context.Context) error {
			_, err := deployments.Create(ctx, d, metav1.CreateOptions{})
			return err
		})
	}
	return Persist(ctx, func(ctx context.Context, _ int) error {
		_, err := deployments.UpdateScale(ctx, d.Name, &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: d.Name, Namespace: d.Namespace},
			Spec:       autoscalingv1.ScaleSpec{Replicas: *d.Spec.Replicas},
		}, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("scaling deployment %s to %d: %w", d.Name, *d.Spec.Replicas, err)
		}
		return nil
	})
}

// state returns the record of a service's scaling.
func (a *Applier) state(service int) *scaled {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.scaled == nil {
		a.scaled = map[int]*scaled{}
	}
	if a.scaled[service] == nil {
		a.scaled[service] = &scaled{}
	}
	return a.scaled[service]
}

func (a *Applier) nodes() kwok.Pool { return cmp.Or(a.Nodes, kwok.Shared) }

func (a *Applier) meta(s topology.Service, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: a.labels(s)}
}

func (a *Applier) labels(s topology.Service) map[string]string {
	return map[string]string{"app": s.Name, kwok.RunLabel: a.Run, kwok.ServiceLabel: s.Name}
}

func (a *Applier) podLabels(s topology.Service) map[string]string {
	labels := a.labels(s)
	maps.Copy(labels, a.PodLabels)
	return labels
}

func (a *Applier) namespace(name string) *corev1.Namespace {
	labels := map[string]string{kwok.RunLabel: a.Run}
	if a.NamespaceLabels != nil {
		maps.Copy(labels, a.NamespaceLabels(name))
	}
	maps.Copy(labels, a.further(name, ""))
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func (a *Applier) account(s topology.Service) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: a.meta(s, s.Account)}
}

func (a *Applier) service(s topology.Service) *corev1.Service {
	service := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: a.meta(s, s.Name)}
	maps.Copy(service.Labels, a.further(s.Namespace, s.Name))
	service.Spec.Selector = map[string]string{"app": s.Name}
	switch {
	case s.Headless:
		service.Spec.ClusterIP = corev1.ClusterIPNone
	case s.Address > 0:
		service.Spec.ClusterIP = kwok.ServiceAddress(s.Address)
	}
	for _, p := range s.Ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: p.Name, Port: int32(p.Number), TargetPort: intstr.FromInt32(int32(p.Target)),
		})
	}
	return service
}

func (a *Applier) deployment(service, replicas int) *appsv1.Deployment {
	s := a.Mesh.Services[service]
	if a.Templates != nil {
		made := a.templated(s, a.Templates[service], int32(replicas))
		if a.Annotations != nil {
			made.Annotations = a.Annotations[service]
		}
		return made
	}
	made := a.deploymentOf(s, replicas)
	kwok.SpreadOverZones(&made.Spec.Template.Spec, a.zones(service), made.Spec.Selector.MatchLabels)
	kwok.SetGracePeriod(&made.Spec.Template, a.GracePeriod)
	if s.Gateway {
		a.Gateway(&made.Spec.Template)
	}
	return made
}

// zones returns the zones of the mesh, for each service from another one on, so that pods that are left over are not
// all in the same.
func (a *Applier) zones(service int) (all []string) {
	n := topology.Value(a.Mesh.Profile.Zones)
	for i := range n {
		all = append(all, kwok.ZoneName((service+i)%n))
	}
	return all
}

// deploymentOf returns the Deployment of a service's pods on fake nodes.
func (a *Applier) deploymentOf(s topology.Service, replicas int) *appsv1.Deployment {
	count := int32(replicas)
	app := corev1.Container{Name: "app", Image: "scaler.mesh/simulated"}
	for _, p := range s.Ports {
		app.Ports = append(app.Ports, corev1.ContainerPort{Name: p.Name, ContainerPort: int32(p.Target)})
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: a.meta(s, s.Name),
		Spec: appsv1.DeploymentSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.Name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: a.podLabels(s), Annotations: a.podAnnotations(s.Namespace)},
				Spec: corev1.PodSpec{
					ServiceAccountName: s.Account,
					Containers:         []corev1.Container{app},
					NodeSelector:       a.nodes().NodeSelector(),
					Tolerations:        []corev1.Toleration{a.nodes().Toleration()},
				},
			},
		},
	}
}

// templated returns the Deployment of a service whose pods have a template. Pods without
// sidecars do not carry the run's label, but one of their own: they need no simulated sidecar and
// are not waited for.
func (a *Applier) templated(s topology.Service, template corev1.PodTemplateSpec, replicas int32) *appsv1.Deployment {
	own := map[string]string{kwok.ServiceLabel: s.Name}
	template = *template.DeepCopy()
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	maps.Copy(template.Labels, own)
	if s.Outside {
		template.Labels[kwok.OutsideLabel] = a.Run
	} else {
		maps.Copy(template.Labels, a.PodLabels)
		template.Labels[kwok.RunLabel] = a.Run
	}
	template.Spec.NodeSelector, template.Spec.Tolerations = a.nodes().NodeSelector(), []corev1.Toleration{a.nodes().Toleration()}
	for i := range template.Spec.TopologySpreadConstraints {
		template.Spec.TopologySpreadConstraints[i].LabelSelector = &metav1.LabelSelector{MatchLabels: own}
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: s.Object(), Namespace: s.Namespace, Labels: map[string]string{kwok.RunLabel: a.Run, kwok.ServiceLabel: s.Name}},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: own}, Template: template},
	}
}

// create creates an object, with retries.
func create(ctx context.Context, kind, name string, do func(context.Context) error) error {
	return Persist(ctx, func(ctx context.Context, try int) error {
		err := do(ctx)
		if try > 0 && apierrors.IsAlreadyExists(err) {
			return nil // the answer of an earlier try was lost
		}
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", kind, name, err)
		}
		return nil
	})
}

// parallel bounds the requests in flight.
const parallel = 32

// each calls do for 0 to n-1, several at once, until one returns an error.
func (a *Applier) each(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

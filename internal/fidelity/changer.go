package fidelity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// meshChanger makes random changes of the mesh and can undo all of them.
type meshChanger struct {
	*run
	objects  map[string]*unstructured.Unstructured // that were made, by kind and name
	services map[string]*corev1.Service            // that were made, by name
	unready  map[int]*corev1.Pod                   // by service
	scaled   map[int]bool
}

func newMeshChanger(r *run) *meshChanger {
	return &meshChanger{
		run: r, objects: map[string]*unstructured.Unstructured{},
		services: map[string]*corev1.Service{}, unready: map[int]*corev1.Pod{}, scaled: map[int]bool{},
	}
}

// make makes one change and returns when it has taken effect in the cluster.
func (m *meshChanger) make(ctx context.Context, c meshChange) error {
	switch c.kind {
	case scaleChange:
		return m.scale(ctx, c.service, c.value)
	case healthChange:
		return m.turn(ctx, c.service, c.on)
	case routeChange:
		return m.mark(ctx, controlplane.RouteProbe, c)
	case policyChange:
		return m.mark(ctx, controlplane.PolicyProbe, c)
	case serviceChange:
		return m.offer(ctx, c)
	default:
		return fmt.Errorf("no change %q", c.kind)
	}
}

// scale also forgets a pod that was made unready, because it may be removed.
func (m *meshChanger) scale(ctx context.Context, service, replicas int) error {
	if pod := m.unready[service]; pod != nil {
		delete(m.unready, service)
		if err := m.report(ctx, pod, kwok.SidecarReady); err != nil {
			return err
		}
	}
	m.scaled[service] = replicas != m.mesh.Services[service].Pods
	s := m.mesh.Services[service]
	if err := m.SetReplicas(ctx, s, replicas); err != nil {
		return fmt.Errorf("scaling %s: %w", s.Name, err)
	}
	return m.awaitReplicas(ctx, service, replicas)
}

// turn makes a pod of a service unready, or ready again.
func (m *meshChanger) turn(ctx context.Context, service int, away bool) error {
	if pod := m.unready[service]; pod != nil || !away {
		delete(m.unready, service)
		if pod == nil {
			return nil // it went with a change of scale
		}
		return m.report(ctx, pod, kwok.SidecarReady)
	}
	s := m.mesh.Services[service]
	pods, err := m.Client.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: kwok.ServiceLabel + "=" + s.Name})
	if err != nil {
		return fmt.Errorf("listing the pods of %s: %w", s.Name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp == nil && pod.Name != m.pods[realSide].Name && pod.Name != m.pods[simulated].Name {
			m.unready[service] = pod
			return m.report(ctx, pod, "unready")
		}
	}
	return nil
}

// mark creates or changes a probe's object, or deletes it.
func (m *meshChanger) mark(ctx context.Context, kind controlplane.ProbeKind, c meshChange) error {
	object, _ := m.istiod.Parts().Probes.Probe(kind, m.mesh, scenario.Settings{}, c.service, xdsprobe.Marker(strconv.Itoa(c.value)))
	key := object.GetKind() + "/" + object.GetName()
	if !c.on {
		delete(m.objects, key)
		return m.removeObject(ctx, object)
	}
	labelled(object)
	if m.objects[key] != nil { // istiod may write its status meanwhile
		patch, err := json.Marshal(map[string]any{"spec": object.Object["spec"]})
		if err != nil {
			return err
		}
		if _, err := m.Resource(object).Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("changing %s: %w", key, err)
		}
		return nil
	}
	made, err := m.Resource(object).Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating %s: %w", key, err)
	}
	m.objects[key] = made
	return nil
}

// offer creates another service for the pods of a service, or deletes it. Its port is, in
// turn, an existing one, a new one, and one of an unknown protocol.
func (m *meshChanger) offer(ctx context.Context, c meshChange) error {
	s := m.mesh.Services[c.service]
	services := m.Client.CoreV1().Services(s.Namespace)
	name := "more-" + s.Name
	if !c.on {
		delete(m.services, name)
		return services.Delete(ctx, name, metav1.DeleteOptions{})
	}
	port := []corev1.ServicePort{
		{Name: s.Ports[0].Name, Port: int32(s.Ports[0].Number)},
		{Name: "http-more", Port: 9090},
		{Name: "tcp-more", Port: 9091},
		{Name: "more", Port: 9092},
	}[c.value%4]
	port.TargetPort = intstr.FromInt32(int32(s.Ports[0].Target))
	service, err := services.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": s.Name}, Ports: []corev1.ServicePort{port}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating service %s: %w", name, err)
	}
	m.services[name] = service
	return nil
}

// restore undoes the remaining changes.
func (m *meshChanger) restore(ctx context.Context) error {
	var errs []error
	for _, object := range m.objects {
		errs = append(errs, m.removeObject(ctx, object))
	}
	for _, s := range m.services {
		errs = append(errs, m.Client.CoreV1().Services(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{}))
	}
	for _, pod := range m.unready {
		errs = append(errs, m.report(ctx, pod, kwok.SidecarReady))
	}
	m.unready = map[int]*corev1.Pod{}
	for service, scaled := range m.scaled {
		if scaled {
			errs = append(errs, m.scale(ctx, service, m.mesh.Services[service].Pods))
		}
	}
	return errors.Join(errs...)
}

// labelled adds the run's label to an object, by which everything is deleted at the end.
func labelled(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[kwok.RunLabel] = runName
	object.SetLabels(labels)
}

// putObject creates an object of the mesh.
func (r *run) putObject(ctx context.Context, object *unstructured.Unstructured) error {
	labelled(object)
	if _, err := r.Resource(object).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// removeObject deletes an object; it is no error if it does not exist.
func (r *run) removeObject(ctx context.Context, object *unstructured.Unstructured) error {
	err := r.Resource(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

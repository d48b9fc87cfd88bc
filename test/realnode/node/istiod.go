package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	sigsyaml "sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/component"
)

// istiod is the name of its Deployment.
const istiod = "istiod"

// readManifests gives the objects of an installation of the default release, in their order.
func readManifests(paths map[string]string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(filepath.Join(paths[component.IstioManifests], component.IstioManifestsFile))
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	var all []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 1<<16); ; {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the manifests: %w", err)
		}
		if len(obj.Object) > 0 {
			all = append(all, obj)
		}
	}
}

// isIstiod reports whether an object is istiod's Deployment.
func isIstiod(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "Deployment" && obj.GetName() == istiod
}

// istiodImage returns the image that the manifests name, and namespace where istiod is to run.
func istiodImage(manifests []*unstructured.Unstructured) (image, namespace string, err error) {
	for _, obj := range manifests {
		containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
		if isIstiod(obj) && len(containers) == 1 {
			if ref, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image"); ref != "" {
				return ref, obj.GetNamespace(), nil
			}
		}
	}
	return "", "", errors.New("the manifests have no Deployment istiod with one container that has an image")
}

// install installs istiod from the manifests, and returns when its webhook injects sidecars. proxy is the image of these.
func install(ctx context.Context, o options, paths map[string]string, kubeconfig string) (proxy string, err error) {
	progress("installing istiod")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return "", err
	}
	manifests, err := readManifests(paths)
	if err != nil {
		return "", err
	}
	_, namespace, err := istiodImage(manifests)
	if err != nil {
		return "", err
	}
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	for _, obj := range manifests {
		if err := adapt(obj, o); err != nil {
			return "", fmt.Errorf("changing %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		kind := obj.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return "", err
		}
		_, err = objects.Resource(mapping.Resource).Namespace(obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("creating %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	scale, err := client.AppsV1().Deployments(namespace).GetScale(ctx, istiod, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if scale.Spec.Replicas != int32(o.replicas) {
		scale.Spec.Replicas = int32(o.replicas)
		if _, err := client.AppsV1().Deployments(namespace).UpdateScale(ctx, istiod, scale, metav1.UpdateOptions{}); err != nil {
			return "", err
		}
	}
	progress("waiting until istiod injects sidecars")
	err = until(ctx, "istiod is ready and its webhook injects sidecars", func() (bool, error) {
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, istiod, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if d.Status.ReadyReplicas != int32(o.replicas) || d.Status.Replicas != int32(o.replicas) {
			return false, fmt.Errorf("%d of %d replicas are ready", d.Status.ReadyReplicas, o.replicas)
		}
		proxy, err = proxyImage(ctx, client)
		return proxy != "", err
	})
	return proxy, err
}

// adapt changes an object of the manifests: istiod has the replicas that are asked for and, with
// sidecars, the settings with which upstream's Envoy understands what it sends.
func adapt(obj *unstructured.Unstructured, o options) error {
	switch {
	case isIstiod(obj):
		if err := unstructured.SetNestedField(obj.Object, int64(o.replicas), "spec", "replicas"); err != nil || !o.sidecars {
			return err
		}
		containers, _, err := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
		if err != nil {
			return err
		}
		container := containers[0].(map[string]any)
		env, _, err := unstructured.NestedSlice(container, "env")
		if err != nil {
			return err
		}
		for _, name := range []string{"PILOT_ENABLE_METADATA_EXCHANGE", "PILOT_ENABLE_ALPN_FILTER"} {
			env = append(env, map[string]any{"name": name, "value": "false"})
		}
		container["env"] = env
		return unstructured.SetNestedSlice(obj.Object, containers, "spec", "template", "spec", "containers")
	case o.sidecars && obj.GetKind() == "ConfigMap":
		text, found, err := unstructured.NestedString(obj.Object, "data", "mesh")
		if err != nil || !found {
			return err
		}
		mesh := map[string]any{}
		if err := sigsyaml.Unmarshal([]byte(text), &mesh); err != nil {
			return err
		}
		delete(mesh, "defaultProviders")
		mesh["enablePrometheusMerge"] = false
		adapted, err := sigsyaml.Marshal(mesh)
		if err != nil {
			return err
		}
		return unstructured.SetNestedField(obj.Object, string(adapted), "data", "mesh")
	}
	return nil
}

// proxyImage returns the image of the sidecar that a pod would have, which is not created; "" where it
// would have none.
func proxyImage(ctx context.Context, client kubernetes.Interface) (string, error) {
	pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: map[string]string{"sidecar.istio.io/inject": "true"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: appImage}}},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", err
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Name == "istio-proxy" {
			return c.Image, nil
		}
	}
	return "", nil
}

package attach

import (
	"context"
	"errors"
	"strings"

	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/internal/measure/clusterprometheus"
	"scaler.mesh/scaler/internal/place/existing"
)

// lookForPrometheus looks at the Prometheus of a target; nil where it names none. What it lacks is an error of the source: a run goes
// on without it.
func lookForPrometheus(ctx context.Context, t Target, f *Found) *clusterprometheus.Source {
	if t.Prometheus == (clusterprometheus.Address{}) {
		return nil
	}
	fail := func(err error) *clusterprometheus.Source {
		return &clusterprometheus.Source{Address: t.Prometheus, Detected: t.Prometheus.Detect, Err: err}
	}
	i := f.Installation
	if len(i.Pods) == 0 {
		return fail(errors.New("the cluster has no pods of the control plane, whose metrics it could have"))
	}
	client, err := kubernetes.NewForConfig(f.Cluster.Config)
	if err != nil {
		return fail(err)
	}
	return clusterprometheus.Look(ctx, clusterprometheus.Options{
		Address: t.Prometheus, Token: t.PrometheusToken, Cluster: f.Cluster.Config, Client: client,
		Program: clusterprometheus.Program{Namespace: i.Namespace, Deployment: i.Deployment, Pods: i.Pods, Container: i.Container},
	})
}

// checkPrometheus reports whether a run may ask the Prometheus that it is to ask, and gets what it wants. A run goes on without it.
func checkPrometheus(source *clusterprometheus.Source) doctor.Result {
	if source.Err != nil {
		return doctor.Result{
			Name: "Prometheus", Status: doctor.Warning, Fix: "see docs/guides/own-cluster.md; for a Service, the ClusterRole " + existing.PrometheusRoleName + " there",
			Detail: source.Address.String() + ": " + strings.ReplaceAll(source.Err.Error(), "\n", "; ") + ": a record will not have its figures",
		}
	}
	return doctor.Result{Name: "Prometheus", Status: doctor.OK, Detail: source.Address.String() + " has metrics of the control plane"}
}

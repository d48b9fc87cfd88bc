package attach

import (
	"context"
	"errors"
	"strings"

	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/pkg/clusterprometheus"
	"scaler.mesh/scaler/pkg/environment/existing"
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

// checkPrometheus reports whether a run may ask a Prometheus of the cluster, or the one of the target. One that may not is possible.
func checkPrometheus(ctx context.Context, t Target, f *Found) doctor.Result {
	r := doctor.Result{Name: "Prometheus", Status: doctor.OK, Detail: "a Prometheus that is a Service of the cluster may be asked (--prometheus-url)"}
	warn := func(detail, fix string) doctor.Result {
		r.Status, r.Detail, r.Fix = doctor.Warning, detail, fix
		return r
	}
	if source := lookForPrometheus(ctx, t, f); source != nil {
		if source.Err != nil {
			return warn(source.Address.String()+": "+strings.ReplaceAll(source.Err.Error(), "\n", "; ")+": a record will not have its figures", "see docs/guides/own-cluster.md")
		}
		r.Detail = source.Address.String() + " has metrics of the control plane"
		return r
	}
	missing, err := f.Cluster.MissingRights(ctx, existing.PrometheusRights())
	switch {
	case err != nil:
		return warn(err.Error(), "see docs/guides/own-cluster.md")
	case len(missing) > 0:
		return warn("context "+f.Cluster.Context+" lacks the right "+strings.Join(missing, ", ")+", which --prometheus-url needs for a Service of the cluster",
			"bind the ClusterRole "+existing.PrometheusRoleName+" in docs/guides/own-cluster.md, too, if a run is to ask one")
	}
	return r
}

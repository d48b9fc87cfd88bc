package attach

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/pkg/scenario"
)

// dialTimeout is the time limit of a connection to the control plane.
const dialTimeout = 5 * time.Second

// Doctor checks what a cluster lacks for a run, until a check fails that the others need.
// Last it connects to the control plane, which no other does. It creates nothing.
func Doctor(ctx context.Context, d controlplane.Driver, t Target, knobs scenario.Settings) []doctor.Result {
	var results []doctor.Result
	f := &Found{}
	all := append(checks(d, t, []scenario.Settings{knobs}, "doctor"), check{
		"connection", "see docs/guides/own-cluster.md", func(ctx context.Context, f *Found) (string, error) { return tryConnection(ctx, t, f) },
	})
	for _, c := range all {
		detail, err := c.do(ctx, f)
		if err != nil {
			results = append(results, doctor.Result{Name: c.name, Status: doctor.Failed, Detail: err.Error(), Fix: c.fix})
			if c.name != "rights" {
				break
			}
			continue
		}
		results = append(results, doctor.Result{Name: c.name, Status: doctor.OK, Detail: detail})
	}
	if f.Cluster != nil && len(f.Installation.Pods) > 0 {
		results = append(results, f.checkKubelets(ctx))
	}
	return results
}

// checkKubelets reports whether a run may read what real sidecars use. One that may not is possible.
func (f *Found) checkKubelets(ctx context.Context) doctor.Result {
	r := doctor.Result{Name: "kubelets", Status: doctor.OK, Detail: "what real sidecars use may be read from the kubelets' cAdvisor"}
	missing, err := f.Cluster.MissingRights(ctx, existing.KubeletRights())
	switch {
	case err != nil:
		r.Detail = err.Error()
	case len(missing) > 0:
		r.Detail = "context " + f.Cluster.Context + " lacks the right " + strings.Join(missing, ", ") + ": the record of a run with --real-sidecars will not have what they use"
	default:
		return r
	}
	r.Status, r.Fix = doctor.Warning, "bind the ClusterRole "+existing.KubeletRoleName+" in docs/guides/permissions.md, too"
	return r
}

// tryConnection connects to where proxies do, and reads the metrics.
func tryConnection(ctx context.Context, t Target, f *Found) (string, error) {
	c, err := Connect(ctx, t, f, func(error) {})
	if err != nil {
		return "", err
	}
	defer c.Close()
	dialer := net.Dialer{Timeout: dialTimeout}
	connection, err := dialer.DialContext(ctx, "tcp", c.Address)
	if err != nil {
		return "", fmt.Errorf("connecting to the control plane: %w", err)
	}
	connection.Close()
	detail := "the control plane is reached at " + c.Address
	if t.Address == "" {
		detail = fmt.Sprintf("the control plane is reached through the API server, %d pods", len(c.Instances))
	}
	for _, one := range c.Instances {
		if _, err := measure.OfMetrics(ctx, one.Name, one.Metrics).Read(); err != nil {
			return "", err
		}
	}
	if len(c.Instances) == 0 {
		detail += "; its cores and memory are not known: the cluster has no pods of it, and place.metrics is not given"
	}
	return detail, nil
}

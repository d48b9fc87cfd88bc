package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/credentialfile"
	"scaler.mesh/scaler/internal/measure/clusterprometheus"
)

// historyOptions holds the flags for the Prometheus of a capture.
type historyOptions struct {
	address, token, ca, tenant string
	days                       int
}

func (o *historyOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.address, "prometheus", "", "`ADDRESS` of a Prometheus that has the metrics of istiod: a URL, service:NAMESPACE/NAME:PORT, through the API server, or detect")
	f.StringVar(&o.token, "prometheus-token", "", "`FILE` with a bearer token for its URL")
	f.StringVar(&o.ca, "prometheus-ca", "", "`FILE` with root certificates in PEM for its URL (default those of this machine)")
	f.StringVar(&o.tenant, "prometheus-tenant", "", "`[HEADER=]TENANT` whose metrics are read (HEADER is X-Scope-OrgID by default)")
	f.IntVar(&o.days, "prometheus-days", 7, "days of history that are read, up to now")
}

// options checks the flags; false = no Prometheus is asked.
func (o *historyOptions) options(f *pflag.FlagSet, files bool) (p clusterprometheus.Options, asked bool, err error) {
	for _, flag := range []string{"token", "ca", "tenant", "days"} {
		if f.Changed("prometheus-"+flag) && o.address == "" {
			return p, false, usagef("--prometheus-%s: want it with --prometheus", flag)
		}
	}
	if !f.Changed("prometheus") {
		return p, false, nil
	}
	if p.Address, err = clusterprometheus.ParseAddress(o.address); err != nil {
		return p, false, usagef("--prometheus: %w", err)
	}
	switch most := int(clusterprometheus.MaxHistory.Hours() / 24); {
	case p.Address == clusterprometheus.Address{}:
		return p, false, usagef(`--prometheus: got "", want an address`)
	case p.Address.URL == "" && files:
		return p, false, usagef("--prometheus: got %q, want a URL with files, which are captured in place of a cluster", o.address)
	case p.Address.URL == "" && o.token+o.ca != "":
		return p, false, usagef("--prometheus-token, --prometheus-ca: want a URL with them, or none: requests to the API server use the kubeconfig's credentials")
	case o.days < 1 || o.days > most:
		return p, false, usagef("--prometheus-days: got %d, want 1 to %d", o.days, most)
	}
	if o.token != "" {
		if p.Token, err = credentialfile.Token(o.token); err != nil {
			return p, false, usagef("--prometheus-token: %w", err)
		}
	}
	if o.ca != "" {
		if p.Roots, err = credentialfile.Roots(o.ca); err != nil {
			return p, false, usagef("--prometheus-ca: %w", err)
		}
	}
	header, tenant, named := strings.Cut(o.tenant, "=")
	if !named {
		header, tenant = "X-Scope-OrgID", header
	}
	if header == "" || tenant == "" && f.Changed("prometheus-tenant") || strings.ContainsAny(o.tenant, "\r\n :") {
		return p, false, usagef("--prometheus-tenant: got %q, want [HEADER=]TENANT", o.tenant)
	}
	p.TenantHeader, p.Tenant = header, tenant
	return p, true, nil
}

// history adds the history of its control plane to a mesh. cluster is the cluster of a Prometheus that is a Service; nil =
// there is none. Figures that the Prometheus does not have are listed as missing, without an error.
func (o *historyOptions) history(ctx context.Context, p clusterprometheus.Options, cluster *rest.Config, mesh *capture.Mesh) (err error) {
	c := mesh.ControlPlane
	if c == nil {
		return usagef("--prometheus: want a cluster or files with a control plane, whose metrics are read: none was found")
	}
	if p.Cluster = cluster; cluster != nil {
		if p.Client, err = kubernetes.NewForConfig(cluster); err != nil {
			return err
		}
	}
	length := time.Duration(o.days) * 24 * time.Hour
	observed := func(from, to time.Time, all []clusterprometheus.Range, err error) *capture.History {
		if err != nil {
			now := time.Now().Truncate(clusterprometheus.HistoryStep)
			return unknownHistory(now.Add(-length), now, clusterprometheus.HistoryStep, err)
		}
		return historyOf(from, to, clusterprometheus.HistoryStep, all)
	}
	for i := range c.Revisions {
		r := &c.Revisions[i]
		p.Program = clusterprometheus.Program{Namespace: r.Home(), Deployment: r.Deployment(), Container: "discovery"}
		source := clusterprometheus.Look(ctx, p)
		r.History = observed(source.History(ctx, length))
		if c.APIServer == nil || len(c.APIServer.Figures) == 0 { // the Prometheus of this revision may have it
			c.APIServer = observed(source.APIServerHistory(ctx, length))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// unknownHistory returns a history of which nothing is known.
func unknownHistory(from, to time.Time, step time.Duration, why error) *capture.History {
	h := capture.NewHistory(from, to, step)
	h.Lacks("all", why.Error())
	return h
}

// historyOf converts figures whose values are of a step each.
func historyOf(from, to time.Time, step time.Duration, all []clusterprometheus.Range) *capture.History {
	h := capture.NewHistory(from, to, step)
	for _, r := range all {
		if r.Err != nil {
			h.Lacks(r.Name, r.Err.Error())
		}
		for _, k := range r.Kinds {
			h.Observe(r.Name, k.Kind, r.Unit, step, k.Values)
		}
	}
	return h
}

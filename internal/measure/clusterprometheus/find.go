package clusterprometheus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Program names the pods of one program.
type Program struct {
	Namespace  string
	Deployment string // of the pods
	Container  string // the program's, in each pod
}

// pods returns the regular expression of the names of the pods.
func (p Program) pods() string { return regexp.QuoteMeta(p.Deployment) + "-[a-z0-9]+-[a-z0-9]+" }

// Options state which Prometheus is asked, and about what.
type Options struct {
	Address Address // zero = none is asked
	Token   string  // bearer token for a URL; "" = none
	Roots   []byte  // root certificates in PEM for a URL; nil = those of this machine
	// Tenant is sent as TenantHeader with each request; "" = there are no tenants.
	Tenant, TenantHeader string
	// Cluster is needed for a Service, and Client for one that is to be found; nil = there is none.
	Cluster *rest.Config
	Client  kubernetes.Interface // see Cluster; nil = there is none
	Program Program              // it must be set
}

// Source describes a Prometheus that was queried, and whether it has what is needed.
type Source struct {
	Address Address // never one that is to be found, unless none was
	Err     error   // why it is not asked; nil = it is

	client  *client
	program Program
}

// Look finds a Prometheus and checks that it has what it is asked for. It returns nil where no address is given.
func Look(ctx context.Context, o Options) *Source {
	if o.Address == (Address{}) {
		return nil
	}
	if !o.Address.Detect {
		return look(ctx, o)
	}
	none := &Source{Address: o.Address}
	services, err := o.Client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		none.Err = fmt.Errorf("listing services: %w", err)
		return none
	}
	var refused []error
	for _, s := range candidates(services.Items) {
		o.Address = Address{Service: s}
		source := look(ctx, o)
		if source.Err == nil {
			return source
		}
		refused = append(refused, fmt.Errorf("%s: %w", s, source.Err))
	}
	if none.Err = errors.Join(refused...); none.Err == nil {
		none.Err = errors.New("no Service of the cluster is that of a Prometheus, by its labels and its name")
	}
	return none
}

// look looks at the Prometheus at an address.
func look(ctx context.Context, o Options) *Source {
	s := &Source{Address: o.Address, program: o.Program}
	if s.client, s.Err = open(o); s.Err != nil {
		return s
	}
	result, err := s.client.query(ctx, s.program.countExpr(), time.Time{})
	if err != nil {
		s.Err = err
		return s
	}
	if counted, _ := result.(model.Vector); len(counted) == 0 {
		s.Err = fmt.Errorf("it has no %s or %s of pods %s/%s", ownProcessorTime, containerProcessorTime, o.Program.Namespace, o.Program.pods())
	}
	return s
}

// The metrics of processor time, one of which a Prometheus has of every control plane that it scrapes.
const (
	ownProcessorTime       = "process_cpu_seconds_total"
	containerProcessorTime = "container_cpu_usage_seconds_total"
)

// countExpr returns the PromQL that counts the series of processor time by metric.
func (p Program) countExpr() string {
	return fmt.Sprintf("count by (__name__) ({__name__=~%q,namespace=%q,pod=~%q})", ownProcessorTime+"|"+containerProcessorTime, p.Namespace, p.pods())
}

// candidates returns the services that may be those of a Prometheus, the likelier first: by the label that kube-prometheus, the Prometheus
// chart and Istio's addon give, by those of kube-prometheus-stack, by the names of older ones, and prometheus-operated, which Prometheus
// Operator makes for every Prometheus.
func candidates(services []corev1.Service) []Service {
	type ranked struct {
		Service
		rank int
	}
	var found []ranked
	for _, s := range services {
		rank := slices.Index([]bool{
			s.Labels["app.kubernetes.io/name"] == "prometheus" && s.Labels["app.kubernetes.io/component"] != "alertmanager",
			s.Labels["self-monitor"] != "" && strings.HasSuffix(s.Labels["app"], "-prometheus"),
			s.Name == "prometheus-k8s" || s.Name == "prometheus-server" || s.Name == "prometheus" || strings.HasSuffix(s.Name, "-prometheus-server"),
			s.Name == "prometheus-operated",
		}, true)
		port, scheme := portOf(s)
		if rank < 0 || port == "" {
			continue
		}
		found = append(found, ranked{Service{Scheme: scheme, Namespace: s.Namespace, Name: s.Name, Port: port}, rank})
	}
	slices.SortStableFunc(found, func(a, b ranked) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return strings.Compare(a.Service.String(), b.Service.String())
	})
	var all []Service
	for _, f := range found {
		all = append(all, f.Service)
	}
	return all
}

// portOf returns the port of a Service that has the API of Prometheus; "" = none does.
func portOf(s corev1.Service) (port, scheme string) {
	best := -1
	for _, p := range s.Spec.Ports {
		rank := slices.Index([]bool{p.Port == 9090, slices.Contains([]string{"http-web", "web", "http"}, p.Name), p.Port == 80, p.Name == "https" || p.Port == 443}, true)
		if rank >= 0 && (best < 0 || rank < best) {
			best, port, scheme = rank, fmt.Sprint(p.Port), ""
			if p.Name == "https" || p.Port == 443 {
				scheme = "https"
			}
		}
	}
	return port, scheme
}

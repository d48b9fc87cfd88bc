package cli

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/measure/clusterprometheus"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/task"
)

type captureOptions struct {
	kubeconfig, context string
	from                []string
	out                 string
	anonymize           bool
	history             historyOptions
	observe             time.Duration
}

func newCaptureCommand(s streams) *cobra.Command {
	o := captureOptions{}
	cmd := &cobra.Command{
		Use:   "capture [FILE]...",
		Short: "Capture the mesh of a cluster as a file for 'scaler rollout --mesh'",
		Long: `Capture writes the mesh of a cluster to a file: services with their ports, workloads
with replicas, accounts and zones, pods without sidecars, gateways, and all objects of
Istio and of the Gateway API. Of the control plane it writes each revision: version,
arguments, environment, requests and limits, replicas, autoscaler, mesh configuration,
injection, tags, and the namespaces that follow it. It reads the kinds that the guide
lists and no other, no Secrets in particular, masks what looks like a credential, and
leaves out status, and images, commands and environment of workloads. With --prometheus
it adds what istiod used in the last days, and with --observe what it uses in a few minutes,
by its own metrics. A summary states what there is, what was left
out and why, and what a rollout does not reproduce.

The cluster is that of the current context of the kubeconfig, as kubectl has it, or
that of --context. With FILE or --from no cluster is read: the objects are those of
files that 'kubectl get -A -o yaml' wrote.`,
		Example: `  # the mesh of a context of the kubeconfig
  scaler capture --context production --output-file mesh.yaml

  # with what istiod used in the last days
  scaler capture --context production --prometheus detect --output-file mesh.yaml

  # without names, to be shared
  scaler capture --context production --anonymize --output-file mesh.yaml

  # from files
  kubectl get -A -o yaml ns,svc,deploy,sts,ds,pods,nodes,endpointslices >cluster.yaml
  kubectl get -A -o yaml istio-io >istio.yaml
  kubectl get -n istio-system -o yaml cm,hpa >control-plane.yaml
  kubectl get -o yaml mutatingwebhookconfigurations >webhooks.yaml
  scaler capture cluster.yaml istio.yaml control-plane.yaml webhooks.yaml --output-file mesh.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd.Flags(), args, s) },
	}
	f := cmd.Flags()
	f.StringVar(&o.context, "context", "", "context of the kubeconfig (default the current one)")
	addField(f, &o.kubeconfig, "place.kubeconfig", "")
	f.StringArrayVar(&o.from, "from", nil, "`FILE` with objects as 'kubectl get -A -o yaml' prints them, repeatable, in place of a cluster")
	f.StringVar(&o.out, "output-file", "mesh.yaml", "`FILE` to write; - is stdout")
	o.history.addTo(f)
	f.DurationVar(&o.observe, "observe", 0, "without a Prometheus: `TIME` between two readings of istiod's own metrics, 1m to 1h, which the capture waits for (default none is read)")
	f.BoolVar(&o.anonymize, "anonymize", false, "hash names, hosts and values of labels; references stay intact")
	return cmd
}

func (o *captureOptions) run(ctx context.Context, f *pflag.FlagSet, args []string, s streams) error {
	files := append(o.from, args...)
	if o.out == "" {
		return usagef(`--output-file: got "", want a file, or - for stdout`)
	}
	if len(files) > 0 && (o.context != "" || o.kubeconfig != "") {
		return usagef("--context: got %q, want none with files, which are captured in place of a cluster", o.context)
	}
	asked, withHistory, err := o.history.options(f, len(files) > 0)
	if err != nil {
		return err
	}
	if err := checkObserved(f, o.observe, len(files) > 0, withHistory); err != nil {
		return err
	}
	mesh, err := o.gather(ctx, files, asked, withHistory, s)
	if err != nil {
		return err
	}
	if o.anonymize {
		if err := mesh.Anonymize(); err != nil {
			return err
		}
	}
	if err := o.write(&mesh, s); err != nil {
		return err
	}
	return mesh.Summary(s.err)
}

// gather captures a mesh, with its history if that is asked for.
func (o *captureOptions) gather(ctx context.Context, files []string, asked clusterprometheus.Options, withHistory bool, s streams) (capture.Mesh, error) {
	mesh, config, err := o.capture(ctx, files, s)
	if err == nil && withHistory {
		err = o.history.history(ctx, asked, config, &mesh)
	}
	if err == nil && o.observe > 0 {
		err = o.observed(ctx, config, &mesh, s)
	}
	return mesh, err
}

// observed adds to a mesh what its control plane reports of itself.
func (o *captureOptions) observed(ctx context.Context, config *rest.Config, mesh *capture.Mesh, s streams) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return observation{
		client: client, wait: task.WaitUntil, now: time.Now, say: progress(s), ask: asking(config),
	}.history(ctx, o.observe, mesh)
}

// capture captures the mesh of files, or of a cluster, whose configuration it returns, too.
func (o *captureOptions) capture(ctx context.Context, files []string, s streams) (mesh capture.Mesh, config *rest.Config, err error) {
	if len(files) > 0 {
		if mesh, err = capture.FromFiles(ctx, files...); err != nil {
			err = usagef("%w", err)
		}
		return mesh, nil, err
	}
	if o.context != "" {
		if _, err := (existing.Target{Kubeconfig: o.kubeconfig, Context: o.context}).Open(); err != nil {
			return mesh, nil, usagef("%w", err)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return mesh, nil, usagef("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 50, 100 // pages, one after the other
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return mesh, nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return mesh, nil, err
	}
	mesh, err = capture.FromCluster(ctx, capture.Cluster{
		Discovery: kinds, Dynamic: client, Progress: progress(s), Ask: asking(config),
	})
	return mesh, config, err
}

// askTimeout is the time limit of a request to a pod of the control plane.
const askTimeout = 10 * time.Second

// asking returns a function that sends an HTTP GET to a port of a pod, through the API server.
func asking(config *rest.Config) func(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error) {
	return func(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		forwarded, err := (&existing.Cluster{Config: config}).Forward(ctx, namespace, pod, port)
		if err != nil {
			return nil, err
		}
		defer forwarded.Close()
		return httpget.Get(ctx, &http.Client{}, "http://"+forwarded.Address(port)+path)
	}
}

// write writes the file as a whole: one that is there is replaced once the new one is complete.
func (o *captureOptions) write(mesh *capture.Mesh, s streams) error {
	if o.out == "-" {
		return mesh.Write(s.out)
	}
	f, err := os.OpenFile(o.out+".partial", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(mesh.Write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), o.out)
}

// Command istioclient stands in for a ztunnel in tests: it takes ztunnel's environment, and
// speaks to the control plane by the delta client of Istio's own tests (istio.io/istio/pkg/adsc),
// which subscribes to all Addresses and Authorizations. It reports what it holds as ztunnel
// does, at /config_dump. It requests no certificates.
//
// It differs from a ztunnel in two ways, which are the client's: its node's ID is in every request,
// and it does not state what it holds when it connects again.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"

	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/adsc"
	"istio.io/istio/pkg/log"
	"istio.io/istio/pkg/workloadapi"
	"istio.io/istio/pkg/workloadapi/security"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "istioclient:", err)
		os.Exit(1)
	}
}

// Faults, for a test of what finds them.
const (
	noPolicies = "no-policies" // it subscribes to one Authorization that does not exist, in place of all
	nacks      = "nacks"       // it rejects every Address
	silent     = "silent"      // it never connects
)

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("istioclient", flag.ContinueOnError)
	fault := flags.String("fault", "", "what it does wrong: no-policies, nacks or silent")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.Arg(0) == "version" { // as ztunnel
		fmt.Println(`version.BuildInfo{Version:"istioclient"}`)
		return nil
	}
	if *fault == silent {
		<-ctx.Done()
		return nil
	}
	held := &holding{addresses: map[string]*workloadapi.Address{}, policies: map[string]*security.Authorization{}}
	server := &http.Server{Addr: "127.0.0.1:15000", Handler: held, ReadHeaderTimeout: time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	defer server.Close()

	config, err := configuration()
	if err != nil {
		return err
	}
	options := []adsc.Option{
		adsc.Register(func(c adsc.HandlerContext, name, _ string, a *workloadapi.Address, event adsc.Event) {
			if *fault == nacks {
				c.Reject(errors.New("it is to be rejected"))
			}
			take(held, held.addresses, name, a, event)
		}),
		adsc.Register(func(_ adsc.HandlerContext, name, _ string, a *security.Authorization, event adsc.Event) {
			take(held, held.policies, name, a, event)
		}),
		adsc.Watch[*workloadapi.Address]("*"),
	}
	policies := "*"
	if *fault == noPolicies {
		policies = "istio-system/none"
	}
	options = append(options, adsc.Watch[*security.Authorization](policies))
	_ = log.Configure(log.DefaultOptions()) // to standard error
	client := adsc.NewDelta(strings.TrimPrefix(os.Getenv("XDS_ADDRESS"), "https://"), config, options...)
	go client.Run(ctx)
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// configuration returns the client's, from the environment of a ztunnel.
func configuration() (*adsc.DeltaADSConfig, error) {
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(os.Getenv("XDS_ROOT_CA"))
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("reading XDS_ROOT_CA: no certificate in it")
	}
	cluster := os.Getenv("ISTIO_META_CLUSTER_ID")
	meta, err := structpb.NewStruct(map[string]any{
		"NAME": os.Getenv("POD_NAME"), "NAMESPACE": os.Getenv("POD_NAMESPACE"), "INSTANCE_IPS": os.Getenv("INSTANCE_IP"),
		"NODE_NAME": os.Getenv("NODE_NAME"), "CLUSTER_ID": cluster,
	})
	if err != nil {
		return nil, err
	}
	return &adsc.DeltaADSConfig{Config: adsc.Config{
		NodeType: model.Ztunnel, Workload: os.Getenv("POD_NAME"), Namespace: os.Getenv("POD_NAMESPACE"), IP: os.Getenv("INSTANCE_IP"), Meta: meta,
		GrpcOpts: []grpc.DialOption{
			grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})),
			grpc.WithPerRPCCredentials(bearer{file: os.Getenv("AUTH_TOKEN"), cluster: cluster}),
		},
	}}, nil
}

// bearer adds the headers of ztunnel to a call.
type bearer struct{ file, cluster string }

// GetRequestMetadata is part of credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := os.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + string(token), "clusterid": b.cluster}, nil
}

// RequireTransportSecurity is part of credentials.PerRPCCredentials.
func (bearer) RequireTransportSecurity() bool { return true }

// holding has the resources that the client was sent and that were not removed.
type holding struct {
	mu        sync.Mutex
	addresses map[string]*workloadapi.Address
	policies  map[string]*security.Authorization
}

func take[T any](h *holding, all map[string]T, name string, one T, event adsc.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if event == adsc.EventDelete {
		delete(all, name)
		return
	}
	all[name] = one
}

// ServeHTTP answers with what is held, as far as it names the resources, each by its own content.
func (h *holding) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	type object = map[string]string
	workloads, services, policies := []object{}, []object{}, []object{}
	h.mu.Lock()
	for _, a := range h.addresses {
		if o := a.GetWorkload(); o != nil {
			workloads = append(workloads, object{"uid": o.GetUid()})
		} else {
			services = append(services, object{"namespace": a.GetService().GetNamespace(), "hostname": a.GetService().GetHostname()})
		}
	}
	for _, p := range h.policies {
		policies = append(policies, object{"namespace": p.GetNamespace(), "name": p.GetName()})
	}
	h.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{"workloads": workloads, "services": services, "policies": policies, "certificates": []object{}})
}

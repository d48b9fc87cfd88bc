package xdsprobe

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"

	"scaler.mesh/scaler/test/credential"
)

// services returns a mesh of n services with endpoints for each; generations
// differ in every resource.
func services(n, endpoints, generation int) mesh {
	m := mesh{}
	var domains []string
	for i := range n {
		name := fmt.Sprintf("outbound|80||service-%d.namespace-%d.svc.cluster.local", i, i/50)
		domains = append(domains, name)
		var all []*endpointv3.LbEndpoint
		for e := range endpoints {
			all = append(all, endpoint(fmt.Sprintf("10.%d.%d.%d", i/250, i%250, e), uint32(8000+generation), corev3.HealthStatus_HEALTHY))
		}
		m[resource.ClusterType] = append(m[resource.ClusterType], edsCluster(name, "", generation))
		m[resource.EndpointType] = append(m[resource.EndpointType], assignment(name, all...))
	}
	m[resource.ListenerType] = append(m[resource.ListenerType], listener(fmt.Sprint("0.0.0.0_", 80), manager("80", fmt.Sprint("wasm", generation))))
	m[resource.ExtensionConfigType] = append(m[resource.ExtensionConfigType], extension(fmt.Sprint("wasm", generation)))
	m[resource.RouteType] = append(m[resource.RouteType], route("80", append(domains, fmt.Sprint(generation))...))
	return m
}

// push returns the state-of-the-world responses that bring a mesh.
func push(b *testing.B, m mesh, version string) (responses [][]byte) {
	for _, kind := range []resource.Type{resource.ClusterType, resource.EndpointType, resource.ListenerType, resource.RouteType} {
		r := &discoveryv3.DiscoveryResponse{TypeUrl: kind, VersionInfo: version, Nonce: version}
		for _, one := range m[kind] {
			r.Resources = append(r.Resources, pack(one))
		}
		bytes, err := proto.Marshal(r)
		if err != nil {
			b.Fatal(err)
		}
		responses = append(responses, bytes)
	}
	return responses
}

// take lets a state receive responses and encode what it answers, as a stream
// does.
func take(b *testing.B, st *state, responses [][]byte, out []byte) []byte {
	for _, bytes := range responses {
		r := response{buffer: mem.SliceBuffer(bytes), size: len(bytes)}
		if err := r.parse(bytes, SotW); err != nil {
			b.Fatal(err)
		}
		for _, s := range st.receive(st.store.types.byURL(r.typeURL), &r) {
			out = s.request.append(out[:0], SotW)
		}
		r.release()
	}
	return out
}

// BenchmarkPush is the work of one sidecar for a push that changes everything,
// received and acknowledged, when another sidecar has it already (shared) or not
// (first), and what unmarshalling alone would cost.
func BenchmarkPush(b *testing.B) {
	for _, n := range []int{20, 100, 1000} {
		pushes := [2][][]byte{push(b, services(n, 14, 1), "1"), push(b, services(n, 14, 2), "2")}
		size := 0
		for _, bytes := range pushes[0] {
			size += len(bytes)
		}
		open := func(store *Store) *state {
			st := &state{}
			if err := st.prepare(&Config{Variant: SotW}, store); err != nil {
				b.Fatal(err)
			}
			st.open()
			return st
		}
		b.Run(fmt.Sprintf("services=%d/read=shared", n), func(b *testing.B) {
			store := NewStore()
			st, holders := open(store), [2]*state{open(store), open(store)}
			for i, h := range holders {
				take(b, h, pushes[i], nil)
			}
			var out []byte
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				out = take(b, st, pushes[i%2], out)
			}
			runtime.KeepAlive(holders)
		})
		b.Run(fmt.Sprintf("services=%d/read=first", n), func(b *testing.B) {
			var out []byte
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				out = take(b, open(NewStore()), pushes[i%2], out)
			}
		})
		b.Run(fmt.Sprintf("services=%d/read=unmarshal", n), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				for _, bytes := range pushes[i%2] {
					unmarshal(b, bytes)
				}
			}
		})
	}
}

func unmarshal(b *testing.B, bytes []byte) {
	var r discoveryv3.DiscoveryResponse
	if err := proto.Unmarshal(bytes, &r); err != nil {
		b.Fatal(err)
	}
	t := typeOf([]byte(r.GetTypeUrl()))
	for _, a := range r.GetResources() {
		if _, err := byObject(t, a.GetValue()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSidecars starts sidecars against go-control-plane in a process of its
// own and reports what each costs this process: its part of the heap, the stacks
// and the resident set when its set of 125 services with 1800 endpoints is
// complete, and again after a push that changes all of it; goroutines; and the
// processor time of that push.
func BenchmarkSidecars(b *testing.B) {
	const fleet = 400
	for _, secured := range []bool{false, true} {
		for _, variant := range []Variant{Delta, SotW} {
			b.Run(fmt.Sprintf("tls=%v/xds=%s", secured, variant), func(b *testing.B) {
				for b.Loop() {
					store, seen := NewStore(), &tally{}
					measure(b, fleet, Config{Variant: variant}, secured, &seen.ends, func(ctx context.Context, c Config) {
						_ = New(c, store, seen).Run(ctx)
					})
					b.ReportMetric(float64(store.Len()), "resources")
				}
			})
		}
	}
}

// BenchmarkFloor is BenchmarkSidecars with clients that do the least that a client
// on grpc-go can, which is what that transport costs (read=nothing), and with such
// that unmarshal and hold everything (read=unmarshal).
func BenchmarkFloor(b *testing.B) {
	for _, secured := range []bool{false, true} {
		for _, how := range []string{"nothing", "unmarshal"} {
			b.Run(fmt.Sprintf("tls=%v/xds=%s/read=%s", secured, SotW, how), func(b *testing.B) {
				m := services(125, 14, 1)
				m[resource.ExtensionConfigType] = append(m[resource.ExtensionConfigType], extension("wasm2"))
				for b.Loop() {
					var seen atomic.Int64
					measure(b, 400, Config{Variant: SotW}, secured, &seen, func(ctx context.Context, c Config) {
						_ = (&bare{config: c, mesh: m, pushed: func() { seen.Add(1) }, unmarshal: how == "unmarshal"}).run(ctx)
					})
				}
			})
		}
	}
}

// tally is an Observer that counts the updates that changed something.
type tally struct{ updates, ends atomic.Int64 }

func (*tally) TokenFetched(string, proxy.TokenFetched) {}
func (*tally) StreamOpened(string, proxy.StreamOpened) {}
func (*tally) StreamEnded(string, proxy.StreamEnded)   {}
func (*tally) Certified(string, proxy.Certificate)     {}
func (t *tally) Updated(_ string, u proxy.Update) {
	t.updates.Add(1)
	if u.Type == convergence.ECDS && len(u.Set) > 0 {
		t.ends.Add(1)
	}
}

// measure runs a fleet and reports what it costs. seen counts the clients that
// have received a whole set.
func measure(b *testing.B, fleet int, c Config, secured bool, seen *atomic.Int64, run func(context.Context, Config)) {
	child := startChild(b, secured)
	c.Address, c.ServerName, c.RootPEM = child.address, "server", child.rootPEM
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	known()
	before, goroutines := usage(), runtime.NumGoroutine()
	begun := time.Now()
	for i := range fleet {
		c.ID = strconv.Itoa(i)
		c.NodeID = c.ID
		one := c
		running.Go(func() { run(ctx, one) })
	}
	await(b, seen, fleet)
	b.ReportMetric(float64(fleet)/time.Since(begun).Seconds(), "complete/s")
	report := func(when string) {
		now := usage()
		b.ReportMetric(float64(now.heap-before.heap)/float64(fleet), "heap-B/"+when)
		b.ReportMetric(float64(now.stack-before.stack)/float64(fleet), "stack-B/"+when)
		b.ReportMetric(float64(now.resident-before.resident)/float64(fleet), "resident-B/"+when)
	}
	report("complete")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(fleet), "goroutines")

	spent := processor()
	child.push(b)
	await(b, seen, 2*fleet)
	b.ReportMetric(float64((processor()-spent).Microseconds())/float64(fleet), "cpu-µs/push")
	report("pushed")
}

// await waits until a counter has reached n.
func await(b *testing.B, counter *atomic.Int64, n int) {
	deadline := time.After(2 * time.Minute)
	for counter.Load() < int64(n) {
		select {
		case <-deadline:
			b.Fatalf("%d of %d after two minutes", counter.Load(), n)
		case <-time.After(time.Millisecond):
		}
	}
}

// processor returns the processor time that this process has used.
func processor() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

type used struct{ heap, stack, resident int64 }

func usage() (u used) {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	u.heap, u.stack = int64(m.HeapAlloc), int64(m.StackInuse)
	statm, _ := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(statm)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		u.resident = pages * int64(os.Getpagesize())
	}
	return u
}

// child is a go-control-plane server in a process of its own.
type child struct {
	address string
	rootPEM []byte
	push    func(*testing.B)
}

const childEnv = "XDSPROBE_TEST_SERVER"

func startChild(b *testing.B, secured bool) *child {
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+strconv.FormatBool(secured))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	c := &child{push: func(b *testing.B) {
		if _, err := in.Write([]byte("push\n")); err != nil {
			b.Fatal(err)
		}
	}}
	if c.address, err = lines.ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	c.address = strings.TrimSpace(c.address)
	for secured {
		line, err := lines.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		c.rootPEM = append(c.rootPEM, line...)
		if strings.HasPrefix(line, "-----END") {
			break
		}
	}
	return c
}

// oneForAll serves every node the same.
type oneForAll struct{}

func (oneForAll) ID(*corev3.Node) string { return "all" }

// TestMain lets the tests' own program be the server of startChild, in a process of its own.
func TestMain(m *testing.M) {
	secured, err := strconv.ParseBool(os.Getenv(childEnv))
	if err != nil {
		os.Exit(m.Run())
	}
	if err := serveChild(context.Background(), secured); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveChild serves until its input ends, of which each line is a change of all services.
func serveChild(ctx context.Context, secured bool) error {
	var options []grpc.ServerOption
	var rootPEM []byte
	if secured {
		a := credential.NewAuthority(time.Hour)
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(new(a.Pair("server")))))
		rootPEM = a.RootPEM
	}
	snapshots := cache.NewSnapshotCache(true, oneForAll{}, nil)
	set := func(generation int) error {
		s, err := cache.NewSnapshot(strconv.Itoa(generation), services(125, 14, generation))
		if err != nil {
			return err
		}
		return snapshots.SetSnapshot(ctx, "all", s)
	}
	if err := set(1); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	g := grpc.NewServer(options...)
	defer g.Stop()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, snapshots, nil))
	go func() { _ = g.Serve(listener) }()
	fmt.Printf("%s\n%s", listener.Addr(), rootPEM)
	for generation, lines := 2, bufio.NewScanner(os.Stdin); lines.Scan(); generation++ {
		if err := set(generation); err != nil {
			return err
		}
	}
	return nil
}
